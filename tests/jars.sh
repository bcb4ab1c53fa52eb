#!/usr/bin/env bash
# jars.sh HOME SUMS GROUP:ARTIFACT:VERSION...
#
# Fetches jars out of Maven Central, and those that they need, into HOME/jars, once; and compares all
# of them with the SHA-256 sums in the file SUMS. Needs Java and Maven.
set -euo pipefail
home=$1
sums=$(realpath "$2")
shift 2

[ -e "$home/installed" ] && exit
echo "fetching $1 into $home" >&2
rm -rf "$home"
mkdir -p "$home/jars"
{
  echo "<project><modelVersion>4.0.0</modelVersion><groupId>latewood</groupId><artifactId>jars</artifactId>"
  echo "<version>1</version><dependencies>"
  for jar; do
    IFS=: read -r group artifact version <<<"$jar"
    echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
  done
  echo "</dependencies></project>"
} >"$home/pom.xml"
mvn --batch-mode --quiet --file "$home/pom.xml" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$home/jars"
(cd "$home/jars" && sha256sum --quiet --strict --check "$sums")
# Nothing beside what was compared.
diff <(ls "$home/jars") <(cut -d ' ' -f 3 "$sums")
touch "$home/installed"

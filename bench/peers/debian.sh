# Sourced by the scripts of peers that Debian packages: fetches a package and unpacks it into
# the cache directory. Nothing is installed into the system, no service is started.

home=${PEER_HOME:-$HOME/.cache/latewood-peers}/$package

install_peer() {
  [ -e "$home/installed" ] && return
  for program in apt-get dpkg; do
    command -v "$program" >/dev/null || { echo "$package comes from Debian's packages; there is no $program here" >&2; exit 1; }
  done
  echo "fetching Debian's $package into $home" >&2
  rm -rf "$home"
  mkdir -p "$home/package"
  (cd "$home/package" && { apt-get download -qq "$package" || { apt-get update -qq && apt-get download -qq "$package"; }; }) >&2
  dpkg -x "$home"/package/*.deb "$home"
  rm -rf "$home/package"
  touch "$home/installed"
}

# What every such script does with its words: `install`, or `run PORT DIR [ARG...]`, which calls
# the script's own function `server PORT DIR [ARG...]`.
main() {
  local verb=${1:-}
  case $verb in
    install) install_peer ;;
    run)
      [ $# -ge 3 ] || { echo "run needs a port and a directory" >&2; exit 2; }
      install_peer
      shift
      server "$@"
      ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
}

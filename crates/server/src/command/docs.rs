//! Documentation from the registry: COMMAND DOCS, the HELP subcommands, and the page
//! `docs/commands.md`, which a test keeps equal to the registry.

use super::call::{Call, Outcome};
use super::spec::Spec;
use super::{arguments, facts};
use latewood_wire::resp::Reply;

/// One entry of COMMAND DOCS: the name and a map.
pub(crate) fn reply_documentation(reply: &mut Reply<'_>, spec: &Spec, name: &str) {
    let subcommands = spec.subcommands();
    let is_module = spec.group == "timeseries";
    reply.bulk(name);
    let parsed = arguments::parse(spec.syntax);
    let has_arguments = subcommands.is_empty() && !parsed.is_empty();
    let facts = facts::of(name);
    let optional = [
        is_module,
        facts.is_some(),
        facts.is_some(),
        has_arguments,
        !subcommands.is_empty(),
    ];
    reply.map(2 + optional.iter().filter(|is| **is).count());
    reply.key("summary").bulk(spec.summary);
    if let Some((since, complexity)) = facts {
        reply.key("since").bulk(since);
        reply.key("complexity").bulk(complexity);
    }
    reply
        .key("group")
        .bulk(if is_module { "module" } else { spec.group });
    if is_module {
        reply.key("module").bulk("timeseries");
    }
    if has_arguments {
        reply.bulk("arguments");
        arguments::reply(reply, &parsed);
    }
    if !subcommands.is_empty() {
        reply.key("subcommands").map(subcommands.len());
        for sub in subcommands {
            reply_documentation(reply, sub, &format!("{}|{}", spec.name, sub.name));
        }
    }
}

/// `container HELP`: a line for the use of each subcommand, and one for what it does.
pub(crate) fn help(call: &mut Call<'_>) -> Outcome {
    let container = call.args.word(0).to_ascii_uppercase();
    let subcommands = call.commands.find(&container);
    let subcommands = subcommands.map_or(&[][..], Spec::subcommands);
    let upper = String::from_utf8_lossy(&container);
    let mut reply = call.reply();
    reply.array(1 + 2 * subcommands.len());
    reply.simple(format!(
        "{upper} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    ));
    for sub in subcommands {
        let name = sub.name.to_ascii_uppercase();
        reply.simple(format!("{name} {}", sub.syntax).trim_end());
        reply.simple(format!("    {}", sub.summary));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::registry::COMMANDS;
    use std::fmt::Write;

    /// Set to 1 to write the page instead of comparing it.
    const UPDATE: &str = "UPDATE_DOCS";

    #[test]
    fn the_page_of_commands_is_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let page = render();
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(
            committed == page,
            "docs/commands.md is stale: run the tests once with {UPDATE}=1"
        );
    }

    fn render() -> String {
        let mut page = String::from(
            "# Commands\n\n\
             This page lists every command. `[x]` is optional, `a|b` is one of the two, `...` can be repeated.\n\
             Words are accepted in any case. An unsupported command returns `ERR unknown command`.\n\
             [compatibility.md](compatibility.md) lists the differences from Redis and RedisTimeSeries. Unknown\n\
             options of most TS.* commands are ignored, as in RedisTimeSeries.\n\n\
             The page is generated from the server's table of commands.\n",
        );
        let mut groups: Vec<&str> = Vec::new();
        for spec in COMMANDS.all() {
            if !groups.contains(&spec.group) {
                groups.push(spec.group);
            }
        }
        for group in groups {
            write!(page, "\n## {}\n\n", title(group)).unwrap();
            page.push_str("| command | what it does | flags |\n| --- | --- | --- |\n");
            for spec in COMMANDS.all().filter(|spec| spec.group == group) {
                rows(&mut page, spec);
            }
        }
        page
    }

    fn title(group: &str) -> &str {
        match group {
            "timeseries" => "Time series",
            "keyspace" => "Keys",
            "connection" => "Connection",
            "cluster" => "Cluster",
            "transactions" => "Transactions",
            "pubsub" => "Channels",
            "server" => "Server",
            "latewood" => "Latewood",
            other => other,
        }
    }

    fn rows(page: &mut String, spec: &Spec) {
        match spec.subcommands() {
            [] => row(page, spec, &spec.name.to_ascii_uppercase()),
            subcommands => {
                for sub in subcommands {
                    let name = format!("{} {}", spec.name, sub.name);
                    row(page, sub, &name.to_ascii_uppercase());
                }
            }
        }
    }

    fn row(page: &mut String, spec: &Spec, name: &str) {
        let line = format!("{name} {}", spec.syntax);
        let line = line.trim_end().replace('|', "\\|");
        let flags = spec.flags.join(" ");
        writeln!(page, "| `{line}` | {} | {flags} |", spec.summary).unwrap();
    }
}

"""Line charts as SVG: figures against the share of late samples, and panels over time."""

import io
import statistics

import matplotlib

matplotlib.use("svg")
# The same runs give the same bytes; texts stay texts.
matplotlib.rcParams.update({"svg.hashsalt": "latewood", "svg.fonttype": "none", "font.size": 10})

from matplotlib import pyplot, ticker  # noqa: E402

from tables import filled, groups, number, numbers, value  # noqa: E402

# One colour for each server; they stay apart for the colour-blind and on paper (Okabe, Ito).
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#5a5a5a"]
INK = {"linewidth": 1.8}


def drawn(figure):
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    # The file stands in a page as well: without the head of an XML file.
    text = svg.getvalue()
    return "\n".join(line.rstrip() for line in text[text.index("<svg") :].splitlines()) + "\n"


def axes(plot, x_name, y_name):
    plot.set_xlabel(x_name)
    plot.set_ylabel(y_name)
    plot.set_ylim(bottom=0)
    plot.grid(color="#dddddd", linewidth=0.6)
    plot.spines[["top", "right"]].set_visible(False)
    if plot.get_ylim()[1] >= 4:
        plot.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))


def shares(runs, late, title, y_name, of):
    """Medians against the share of late samples, bars from smallest to largest; None where every
    line is a point."""
    figure, plot = pyplot.subplots(figsize=(9, 4.8), layout="constrained")
    longest = 0
    for family, server in enumerate(groups(runs, ["target"])):
        for kind in groups(server, ["cell.encoding:compressed,uncompressed"]):
            encoding = value(kind[0], "cell.encoding")
            points = [
                (number(group[0], late), found)
                for group in groups(kind, [f"<{late}"])
                if (found := numbers(group, of))
            ]
            x, y = [at for at, _ in points], [statistics.median(found) for _, found in points]
            low = [middle - min(found) for middle, (_, found) in zip(y, points)]
            high = [max(found) - middle for middle, (_, found) in zip(y, points)]
            plot.errorbar(
                x,
                y,
                (low, high),
                color=COLORS[family % len(COLORS)],
                linestyle="--" if encoding == "uncompressed" else "-",
                marker="o",
                markersize=4,
                elinewidth=1,
                label="\n".join(filter(None, [kind[0]["target"], encoding])),
                **INK,
            )
            longest = max(longest, len(points))
    if longest < 2:
        pyplot.close(figure)
        return None
    plot.set_title(title, loc="left")
    axes(plot, "late samples, percent of all", y_name)
    figure.legend(loc="outside right upper", frameon=False)
    return drawn(figure)


def timeline(shown, of, seconds, title, name, panels):
    """Panels one below the other, the same time along each, a line for each run of `shown`."""
    figure, plots = pyplot.subplots(
        len(panels), figsize=(9, 0.6 + 2.2 * len(panels)), sharex=True, layout="constrained"
    )
    for plot, (y_name, kind, expression) in zip(plots, panels):
        for at, run in enumerate(shown):
            points = [(number(point, seconds), number(point, expression)) for point in value(run, of)]
            if kind == "slope":
                points = slope(points)
            x, y = [point[0] for point in points], [point[1] for point in points]
            plot.plot(x, y, color=COLORS[at % len(COLORS)], label=filled(name, run), **INK)
        axes(plot, "", y_name)
        plot.set_xlim(left=0)
    plots[-1].set_xlabel("seconds")
    plots[0].set_title(title, loc="left")
    handles, labels = plots[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False)
    return drawn(figure)


def slope(points):
    """How fast a count grows, by the second; the last two points may lie close together."""
    pairs = [(a, b) for a, b in zip(points, points[1:]) if b[0] - a[0] > 0.2]
    return [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairs]

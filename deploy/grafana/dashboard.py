"""Prints the dashboard for Grafana beside it: ``python deploy/grafana/dashboard.py >deploy/grafana/metasched.json``.

The library is Grafana's own, and in the extra ``test``.
"""

from __future__ import annotations

import json
from string import ascii_uppercase

from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DatasourceVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef

#: The Prometheus that is chosen on the dashboard.
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${source}")
#: How many of the 24 columns of the page a panel takes, and how many rows.
WIDTH, HEIGHT = 12, 8
ANSWERED = (
    "histogram_quantile({}, "
    'sum by (le) (rate(metasched_request_seconds_bucket{{path="/v1/placements"}}[$__rate_interval])))'
)
FIRING = 'ALERTS{alertname=~"Metasched.*", alertstate="firing"}'
#: Title, unit, and the legend of each query.
PANELS = [
    (
        "Questions for placements",
        "reqps",
        {"{{answer}}": "sum by (answer) (rate(metasched_placements_total[$__rate_interval]))"},
    ),
    ("Time to answer a placement", "s", {"median": ANSWERED.format(0.5), "99 %": ANSWERED.format(0.99)}),
    (
        "Loads",
        "cps",
        {
            "stored": "rate(metasched_loads_total[$__rate_interval])",
            "refused: {{reason}}": "sum by (reason) (rate(metasched_loads_refused_total[$__rate_interval]))",
            "repaired: {{rule}}": "sum by (rule) (rate(metasched_loads_repaired_total[$__rate_interval]))",
        },
    ),
    ("Nodes that were heard of", "short", {"nodes": "metasched_nodes_with_loads"}),
    ("Age of the view of placements", "s", {"{{instance}}": "time() - metasched_view_timestamp_seconds"}),
    (
        "Runs",
        "short",
        {
            "stored in an hour": "increase(metasched_runs_total[1h])",
            "wait to be learned": "metasched_runs_to_learn",
            "failed": "metasched_learning_failures",
        },
    ),
    (
        "Runs that models have learned",
        "short",
        {
            "{{application}} on {{platform}}": "sum by (application, platform) (metasched_learned_runs)",
            "models in memory": "metasched_models",
        },
    ),
    ("Waiting for the database", "short", {"batches": "metasched_batches_to_write"}),
    (
        "Schedulers and sources that do not answer",
        "cps",
        {"{{source}}": "sum by (source) (rate(metasched_source_failures_total[$__rate_interval]))"},
    ),
    (
        "Requests by status",
        "reqps",
        {"{{status}}": "sum by (status) (rate(metasched_requests_total[$__rate_interval]))"},
    ),
]


def panel(number: int, title: str, unit: str, queries: dict[str, str]) -> Panel:
    """Curves over time, none below 0; a letter for each query."""
    found = Panel().id(number).title(title).datasource(PROMETHEUS).unit(unit).min(0).span(WIDTH).height(HEIGHT)
    found.legend(VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True))
    found.tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    for letter, (legend, query) in zip(ascii_uppercase, queries.items(), strict=False):
        found.with_target(Dataquery().ref_id(letter).expr(query).legend_format(legend))
    return found


def board() -> Dashboard:
    """The whole dashboard; alerts that fire are marked on every panel."""
    found = Dashboard("metasched").uid("metasched").tags(["metasched"]).version(1).editable().timezone("browser")
    found.refresh("30s").time("now-6h", "now")
    found.with_variable(DatasourceVariable("source").label("Prometheus").type("prometheus"))
    found.annotation(
        AnnotationQuery().name("Alerts").enable(True).icon_color("red").datasource(PROMETHEUS).expr(FIRING)
    )
    for number, each in enumerate(PANELS, 1):
        found.with_panel(panel(number, *each))
    return found


def text() -> str:
    """The dashboard as Grafana imports it."""
    document = json.loads(JSONEncoder().encode(board().build()))
    # The library knows what annotations of all sources have, not what those of Prometheus have besides.
    document["annotations"]["list"][0]["titleFormat"] = "{{alertname}}"
    return json.dumps(document, indent=1, sort_keys=True)


if __name__ == "__main__":
    print(text())

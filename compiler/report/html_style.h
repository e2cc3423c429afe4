// How the page of the report looks: on paper white and on dark screens, from the width of a phone on.
#pragma once

#include <string_view>

namespace shardc {

constexpr auto HtmlStyle() -> std::string_view {
  return R"css(:root { --page: #fff; --text: #1c1f24; --faint: #5c6470; --line: #d9dde3; --card: #f4f6f8; --bar: #3b6fb5;
  --yes: #1c7a3e; --no: #b3261e; --c0: #3b6fb5; --c1: #7fa8dc; --c2: #c4572e; --c3: #e0a12b; --c4: #3d9970;
  --c5: #8e63b5; --c6: #8a8f98; --c7: #c97fa8; --p0: #2b2f36; --p1: #178f8f; --p2: #8b5a2b; --p3: #7d8f1f; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --text: #e4e7eb; --faint: #9aa3af; --line: #343a42;
  --card: #1e2329; --bar: #6f9fe0; --yes: #62c98a; --no: #ff8a80; --c0: #5b8fd6; --c1: #a3c4ee; --c2: #e0774e;
  --c3: #e8b75a; --c4: #5bbd93; --c5: #b08ad6; --c6: #9aa3af; --c7: #dda0c3; --p0: #d5dae0; --p1: #4cc4c4;
  --p2: #b98a5e; --p3: #b3c24e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 16px; }
h1 { font-size: 24px; margin: 8px 0 16px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 32px 0 8px; }
p { margin: 8px 0; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(156px, 1fr)); gap: 8px; }
.cards div { background: var(--card); border-radius: 8px; padding: 10px 12px; }
.cards b { display: block; font-size: 16px; overflow-wrap: anywhere; }
.cards span, .axis, .keys, small { color: var(--faint); font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--faint); font-weight: 500; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--card); border-radius: 8px; padding: 12px; overflow-x: auto; }
.yes { color: var(--yes); font-weight: 600; }
.no { color: var(--no); font-weight: 600; }
svg { display: block; width: 100%; height: 240px; }
polyline { fill: none; stroke: var(--bar); stroke-width: 2; vector-effect: non-scaling-stroke; }
.axis { margin: 2px 0; }
.ends { display: flex; justify-content: space-between; padding-left: 84px; }
.graph { display: grid; grid-template-columns: 76px 1fr; column-gap: 8px; }
.graph .axis { display: flex; flex-direction: column; justify-content: space-between; margin: 0; text-align: right; }
.keys span { margin-right: 10px; white-space: nowrap; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; }
.stack { display: flex; height: 28px; border-radius: 6px; overflow: hidden; margin: 8px 0; }
.stack i { display: block; height: 100%; }
.bar { display: inline-block; width: 120px; height: 10px; border-radius: 3px; background: var(--card); }
.bar i { display: block; height: 100%; border-radius: 3px; background: var(--bar); }
.c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }
.c2 { fill: var(--c2); background: var(--c2); } .c3 { fill: var(--c3); background: var(--c3); }
.c4 { fill: var(--c4); background: var(--c4); } .c5 { fill: var(--c5); background: var(--c5); }
.c6 { fill: var(--c6); background: var(--c6); } .c7 { fill: var(--c7); background: var(--c7); }
.p0 { fill: var(--p0); background: var(--p0); } .p1 { fill: var(--p1); background: var(--p1); }
.p2 { fill: var(--p2); background: var(--p2); } .p3 { fill: var(--p3); background: var(--p3); }
@media (max-width: 600px) { .name { display: inline-block; white-space: normal; overflow-wrap: anywhere; min-width: 9em; }
  .bar { width: 40px; } th, td { padding-right: 9px; font-size: 13px; } svg { height: 180px; } }
summary { cursor: pointer; color: var(--faint); }
)css";
}

}  // namespace shardc

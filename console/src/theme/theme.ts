import { createTheme, type MantineColorsTuple } from "@mantine/core";

// Water in a channel. White on shade 7 and shade 8 has a contrast above 5.5 to 1.
const water: MantineColorsTuple = [
  "#e6f7fa",
  "#cdeef4",
  "#9cdde9",
  "#67cade",
  "#3fb9d2",
  "#1f9fba",
  "#12869f",
  "#0b6e86",
  "#085a6e",
  "#054655",
];

// Greys with a little of the water in them, for the dark.
const dark: MantineColorsTuple = [
  "#e7edf0",
  "#cfd8dd",
  "#a5b4bd",
  "#7f8f99",
  "#3a474e",
  "#2c383f",
  "#1f292e",
  "#182024",
  "#12191c",
  "#0f1518",
];

export const theme = createTheme({
  colors: { water, dark },
  primaryColor: "water",
  primaryShade: 7,
  defaultRadius: "md",
  cursorType: "pointer",
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace',
  headings: {
    fontWeight: "650",
    sizes: { h1: { fontSize: "1.65rem" }, h2: { fontSize: "1.2rem" }, h3: { fontSize: "1rem" } },
  },
  components: {
    Tooltip: { defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } } },
    Modal: { defaultProps: { centered: true, radius: "lg" } },
    Menu: { defaultProps: { shadow: "md" } },
  },
});

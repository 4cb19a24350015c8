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
    '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace',
  // Four sizes and two weights: 12, 14, 18 and 26 pixels; 400 and 600.
  fontSizes: { xs: "0.75rem", sm: "0.875rem", md: "0.875rem", lg: "1.125rem", xl: "1.625rem" },
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "1.625rem" }, h2: { fontSize: "1.125rem" }, h3: { fontSize: "0.875rem" } },
  },
  components: {
    Anchor: { defaultProps: { underline: "always" } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } } },
    Modal: { defaultProps: { centered: true, radius: "lg" } },
    Menu: { defaultProps: { shadow: "md" } },
  },
});

import "./theme/styles";
import "./theme/tokens.css";
import "./theme/nonce";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { mark } from "./i18n/language";

mark();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);

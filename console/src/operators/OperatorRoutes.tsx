import { Route, Routes } from "react-router";
import { NotFound } from "../shell/NotFound";

/** The pages under /operators. They are loaded when somebody goes there. */
export default function OperatorRoutes() {
  return (
    <Routes>
      <Route path="*" element={<NotFound />} />
    </Routes>
  );
}

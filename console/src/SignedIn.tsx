import { Button, Stack } from "@mantine/core";
import { Component, lazy, type ReactNode, Suspense } from "react";
import { Navigate, Route, Routes, useLocation } from "react-router";
import { ConfirmProvider, commonTexts, Loading, Page, ProblemAlert } from "./components";
import { useText } from "./i18n";
import { useNotificationStream } from "./live/notifications";
import { ExpiredDialog } from "./session/ExpiredDialog";
import { useMe } from "./session/store";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";

const RemovePage = lazy(() => import("./pages/remove/RemovePage"));
const RemovalPage = lazy(() => import("./pages/remove/RemovalPage"));
const BatchPage = lazy(() => import("./pages/remove/BatchPage"));
const TasksPage = lazy(() => import("./pages/tasks/TasksPage"));
const TaskPage = lazy(() => import("./pages/tasks/TaskPage"));
const UsagePage = lazy(() => import("./pages/usage/UsagePage"));
const WebhooksPage = lazy(() => import("./pages/webhooks/WebhooksPage"));
const EndpointPage = lazy(() => import("./pages/webhooks/EndpointPage"));
const NotificationsPage = lazy(() => import("./pages/notifications/NotificationsPage"));
const AccountPage = lazy(() => import("./pages/account/AccountPage"));
const OperatorRoutes = lazy(() => import("./operators/OperatorRoutes"));

/** Everything behind the login: loaded after it. */
export default function SignedIn() {
  useNotificationStream();
  const { user } = useMe();
  const { pathname } = useLocation();
  return (
    <ConfirmProvider>
      <ExpiredDialog />
      <Shell>
        <Boundary key={pathname}>
          <Suspense fallback={<Loading />}>
            <Routes>
              <Route
                path="/"
                element={<Navigate to={user.role === "ADMIN" ? "/operators/overview" : "/remove"} replace />}
              />
              <Route path="/login" element={<Return />} />
              <Route path="/register" element={<Return />} />
              <Route path="/forgot-password" element={<Navigate to="/account" replace />} />
              <Route path="/remove" element={<RemovePage />} />
              <Route path="/remove/:taskId" element={<RemovalPage />} />
              <Route path="/remove/batch/:batch" element={<BatchPage />} />
              <Route path="/tasks" element={<TasksPage />} />
              <Route path="/tasks/:taskId" element={<TaskPage />} />
              <Route path="/usage" element={<UsagePage />} />
              <Route path="/webhooks" element={<WebhooksPage />} />
              <Route path="/webhooks/:endpointId" element={<EndpointPage />} />
              <Route path="/notifications" element={<NotificationsPage />} />
              <Route path="/account" element={<AccountPage />} />
              {user.role === "ADMIN" && <Route path="/operators/*" element={<OperatorRoutes />} />}
              <Route path="*" element={<NotFound />} />
            </Routes>
          </Suspense>
        </Boundary>
      </Shell>
    </ConfirmProvider>
  );
}

/** After signing in, continue to the requested page; only within this site. */
function Return() {
  const { search } = useLocation();
  const to = new URLSearchParams(search).get("to") ?? "/";
  return <Navigate to={/^\/(?![/\\])/.test(to) ? to : "/"} replace />;
}

/** A page that breaks leaves the rest standing. */
class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === null ? this.props.children : <Broken error={this.state.error} />;
  }
}

function Broken({ error }: { error: unknown }) {
  const t = useText(commonTexts);
  return (
    <Page title={t("pageFailed")} text={t("pageFailedText")}>
      <Stack align="flex-start">
        <ProblemAlert error={error} />
        <Button onClick={() => location.reload()}>{t("reload")}</Button>
      </Stack>
    </Page>
  );
}

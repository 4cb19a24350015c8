import { Button, Center, Loader, MantineProvider, Stack, Text } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Component, lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { BrowserRouter, Navigate, Route, Routes, useLocation } from "react-router";
import { ApiError } from "./api";
import { isLost, subscribe } from "./api/connection";
import { ConfirmProvider, commonTexts, Loading, Page, ProblemAlert } from "./components";
import { useText } from "./i18n";
import { useNotificationStream } from "./live/notifications";
import { LoginPage, RegisterPage } from "./session/Entrance";
import { ExpiredDialog } from "./session/ExpiredDialog";
import { ConfirmEmailPage, ForgotPage, ResetPage } from "./session/Recovery";
import { load, useMe, useSession } from "./session/store";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";
import { nonce } from "./theme/nonce";
import { theme } from "./theme/theme";

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

function makeQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The transport waits for a server that is away, and for a password; what comes here is final.
        retry: (count, error) => error instanceof ApiError && error.status >= 500 && count < 2,
        staleTime: 5000,
      },
    },
  });
}

export function App() {
  const [queries] = useState(makeQueries);
  useEffect(() => {
    void load();
    // After an outage everything on the page is out of date.
    return subscribe(() => {
      if (!isLost()) void queries.invalidateQueries();
    });
  }, [queries]);
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={nonce}>
      <QueryClientProvider client={queries}>
        <Notifications position="bottom-right" />
        <ConfirmProvider>
          <BrowserRouter>
            <Everything />
          </BrowserRouter>
          <ExpiredDialog />
        </ConfirmProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}

function Everything() {
  const session = useSession();
  const { pathname, search } = useLocation();
  if (session.state === "loading") return <Opening />;
  // Links of e-mails are opened in any browser, signed in or not.
  if (pathname === "/reset-password") return <ResetPage />;
  if (pathname === "/confirm-email") return <ConfirmEmailPage />;
  if (session.state === "out") {
    const here = `${pathname}${search}`;
    return (
      <Routes>
        <Route path="/login" element={<LoginPage />} />
        <Route path="/register" element={<RegisterPage />} />
        <Route path="/forgot-password" element={<ForgotPage />} />
        <Route
          path="*"
          element={<Navigate to={here === "/" ? "/login" : `/login?to=${encodeURIComponent(here)}`} replace />}
        />
      </Routes>
    );
  }
  return <SignedIn />;
}

/** Nothing for a moment, then a word: the server may be starting. */
function Opening() {
  const t = useText(commonTexts);
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 1500);
    return () => clearTimeout(timer);
  }, []);
  return late ? (
    <Center mih="100dvh" p="md">
      <Stack align="center">
        <Loader />
        <Text c="dimmed">{t("connecting")}</Text>
      </Stack>
    </Center>
  ) : null;
}

function SignedIn() {
  useNotificationStream();
  const { user } = useMe();
  const { pathname } = useLocation();
  return (
    <Shell>
      <Boundary key={pathname}>
        <Suspense fallback={<Loading />}>
          <Routes>
            <Route path="/" element={<Navigate to="/remove" replace />} />
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

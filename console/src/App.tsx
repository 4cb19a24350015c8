import { Center, Loader, MantineProvider, Stack, Text } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { BrowserRouter, Navigate, Route, Routes, useLocation } from "react-router";
import { ApiError } from "./api";
import { isLost, subscribe } from "./api/connection";
import { commonTexts } from "./components";
import { useText } from "./i18n";
import { LoginPage, RegisterPage } from "./session/Entrance";
import { load, useSession } from "./session/store";
import { nonce } from "./theme/nonce";
import { theme } from "./theme/theme";

const SignedIn = lazy(() => import("./SignedIn"));
const ConfirmEmailPage = lazy(async () => ({ default: (await import("./session/Recovery")).ConfirmEmailPage }));
const ForgotPage = lazy(async () => ({ default: (await import("./session/Recovery")).ForgotPage }));
const ResetPage = lazy(async () => ({ default: (await import("./session/Recovery")).ResetPage }));
const Toasts = lazy(() => import("./Toasts"));

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
        <Suspense>
          <Toasts />
        </Suspense>
        <BrowserRouter>
          <Suspense>
            <Everything />
          </Suspense>
        </BrowserRouter>
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

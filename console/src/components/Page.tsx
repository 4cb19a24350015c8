import { Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { Id } from "./Id";
import classes from "./Page.module.css";
import { Time } from "./Time";

let lastPath: string | null = null;

/** A page: its title (also the window's), a sentence about it, what can be done, and its content. */
export function Page({
  title,
  text,
  actions,
  children,
}: {
  title: string;
  text?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Headrace`;
  }, [title]);
  useEffect(() => {
    // After going to another page, the keyboard and screen readers begin at its heading.
    if (lastPath !== null && lastPath !== location.pathname) heading.current?.focus({ preventScroll: true });
    lastPath = location.pathname;
  }, []);
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="sm">
        <div className={classes.heading}>
          <Title order={1} ref={heading} tabIndex={-1} className={classes.title}>
            {title}
          </Title>
          {text && (
            <Text c="dimmed" size="sm" mt={4} component="div">
              {text}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

/** A box on a page, with a heading of its own. */
export function Panel({
  title,
  text,
  actions,
  children,
}: {
  title?: string;
  text?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={classes.panel}>
      {(title || actions) && (
        <Group justify="space-between" mb="sm" gap="xs">
          <div>
            {title && <Title order={2}>{title}</Title>}
            {text && (
              <Text c="dimmed" size="sm" component="div">
                {text}
              </Text>
            )}
          </div>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      )}
      {children}
    </section>
  );
}

/** A fact with its name above it; several stand side by side. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.fact}>
      <div className={classes.factName}>{name}</div>
      <div>{children}</div>
    </div>
  );
}

export function Facts({ children }: { children: ReactNode }) {
  return <div className={classes.facts}>{children}</div>;
}

/** When something happened; nothing where it has not. */
export function TimeFact({ name, at, exact = false }: { name: string; at: string | null; exact?: boolean }) {
  if (at === null) return null;
  return (
    <Fact name={name}>
      <Time at={at} exact={exact} />
    </Fact>
  );
}

/** A user or object by its id; empty if unknown. */
export function IdFact({ name, id }: { name: string; id: string | null | undefined }) {
  if (!id) return null;
  return (
    <Fact name={name}>
      <Id id={id} />
    </Fact>
  );
}

import { Button, PasswordInput, type PasswordInputProps, Stack, TextInput, type TextInputProps } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { ProblemAlert } from "../components";

/** A form of the entrance: what was refused, the fields, and one button. */
export function EntranceForm({
  problem,
  problemTitle,
  busy,
  action,
  disabled = false,
  onSubmit,
  after,
  children,
}: {
  problem: unknown;
  problemTitle?: string;
  busy: boolean;
  action: string;
  disabled?: boolean;
  onSubmit: () => unknown;
  after?: ReactNode;
  children: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onSubmit();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {problem !== null && <ProblemAlert error={problem} title={problemTitle} />}
        {children}
        <Button type="submit" loading={busy} mt="xs" disabled={disabled}>
          {action}
        </Button>
        {after}
      </Stack>
    </form>
  );
}

interface Changing {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The name of an account. */
export function UsernameField({ onChange, ...rest }: Omit<TextInputProps, keyof Changing> & Changing) {
  return (
    <TextInput
      name="username"
      autoComplete="username"
      required
      withAsterisk={false}
      onChange={(event) => onChange(event.currentTarget.value)}
      {...rest}
    />
  );
}

/** A password: the present one, or one that is chosen here. */
export function PasswordField({
  fresh = false,
  onChange,
  ...rest
}: Omit<PasswordInputProps, keyof Changing> & Changing & { fresh?: boolean }) {
  return (
    <PasswordInput
      name="password"
      autoComplete={fresh ? "new-password" : "current-password"}
      required
      withAsterisk={false}
      onChange={(event) => onChange(event.currentTarget.value)}
      {...rest}
    />
  );
}

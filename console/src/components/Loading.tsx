import { Skeleton, Stack } from "@mantine/core";

/** What stands where content will be, while it is on its way. */
export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <Stack gap="sm" aria-busy="true">
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton
          // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
          key={index}
          height={index === 0 ? 28 : 18}
          width={`${90 - ((index * 17) % 45)}%`}
          radius="sm"
        />
      ))}
    </Stack>
  );
}

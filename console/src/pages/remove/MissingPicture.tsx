import { useQuery } from "@tanstack/react-query";
import { keys } from "../../api";
import { Empty, Loading } from "../../components";
import { useText } from "../../i18n";
import { reasonFor } from "./missing";
import { removalTexts } from "./remove.texts";

/** In the place of a picture that could not be loaded: why, in words. */
export function MissingPicture({ url }: { url: string }) {
  const t = useText(removalTexts);
  const reason = useQuery({ queryKey: keys.missing(url), queryFn: () => reasonFor(url), retry: false, gcTime: 0 });
  if (!reason.data) return <Loading />;
  return (
    <div data-testid="missing-picture">
      <Empty title={t(reason.data)} />
    </div>
  );
}

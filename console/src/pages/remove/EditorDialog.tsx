import { Modal, Text } from "@mantine/core";
import type { AssetOut } from "../../api";
import { commonTexts } from "../../components";
import { useText } from "../../i18n";
import { AssetEditor } from "./AssetEditor";
import type { MaskDrawing } from "./mask/drawing";
import { maskTexts } from "./mask/mask.texts";

interface Props {
  readonly asset: AssetOut;
  readonly initial: MaskDrawing | null;
  /** Hears of every stroke before it is used. */
  readonly onChange?: (drawing: MaskDrawing) => void;
  readonly onUse: (drawing: MaskDrawing) => void;
  /** What using it means here, where that is more than keeping it. */
  readonly useLabel?: string;
  readonly onClose: () => void;
}

/** The editor over the whole window, with the picture, frame or page to draw on. */
export default function EditorDialog({ asset, onClose, ...props }: Props) {
  const t = useText(maskTexts);
  const common = useText(commonTexts);
  return (
    <Modal
      opened
      onClose={onClose}
      fullScreen
      padding={0}
      title={<Text fw={600}>{t("titleFor", { name: asset.name })}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
      closeOnEscape={false}
      styles={{
        header: { padding: "6px 14px", minHeight: 44 },
        content: { display: "flex", flexDirection: "column" },
        body: { flex: 1, minHeight: 0 },
      }}
    >
      <AssetEditor asset={asset} onCancel={onClose} {...props} />
    </Modal>
  );
}

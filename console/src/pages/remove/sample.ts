// A picture to try it with, for users without one at hand: drawn here on demand, so that it adds no bytes.

const WIDTH = 1200;
const HEIGHT = 800;
const SCALE = 0.75;
const GRAIN = 7;

type Context = CanvasRenderingContext2D;

/** A lake at dusk with a word all over it. */
export async function drawSample(name: string): Promise<File> {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH * SCALE;
  canvas.height = HEIGHT * SCALE;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("no canvas");
  context.scale(SCALE, SCALE);
  sky(context);
  ridge(context, 430, 120, 1.3, "#6d7fa3");
  ridge(context, 480, 100, 2.9, "#46597f");
  ridge(context, 530, 80, 4.6, "#2b3c5c");
  lake(context);
  grain(context);
  words(context);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.93));
  if (blob === null) throw new Error("the sample could not be drawn");
  return new File([blob], name, { type: "image/jpeg" });
}

function sky(context: Context): void {
  const light = context.createLinearGradient(0, 0, 0, 560);
  light.addColorStop(0, "#35507f");
  light.addColorStop(0.55, "#c98a7c");
  light.addColorStop(1, "#f2c48a");
  context.fillStyle = light;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  const sun = context.createRadialGradient(820, 330, 10, 820, 330, 260);
  sun.addColorStop(0, "rgb(255 244 214)");
  sun.addColorStop(0.16, "rgb(255 226 170 / 85%)");
  sun.addColorStop(1, "rgb(255 210 150 / 0%)");
  context.fillStyle = sun;
  context.fillRect(0, 0, WIDTH, HEIGHT);
}

function ridge(context: Context, base: number, height: number, seed: number, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(0, HEIGHT);
  for (let x = 0; x <= WIDTH; x += 4) {
    const wave = Math.sin(x / 170 + seed) / 2 + Math.sin(x / 61 + seed * 3) / 4 + Math.sin(x / 23 + seed * 7) / 10;
    context.lineTo(x, base - wave * height);
  }
  context.lineTo(WIDTH, HEIGHT);
  context.fill();
}

function lake(context: Context): void {
  const water = context.createLinearGradient(0, 580, 0, HEIGHT);
  water.addColorStop(0, "#8a7286");
  water.addColorStop(1, "#1d2b46");
  context.fillStyle = water;
  context.fillRect(0, 580, WIDTH, HEIGHT - 580);
  for (let line = 0; line < 90; line += 1) {
    const width = 30 + ((line * 53) % 90) + line;
    context.fillStyle = `rgb(255 220 170 / ${Math.max(4, 26 - line / 4)}%)`;
    context.fillRect(820 - width / 2 + Math.sin(line * 1.7) * 26, 586 + line * 2.4, width, 1.4);
  }
}

/** As a camera has it: a surface without any is nothing like a photograph. */
function grain(context: Context): void {
  const pixels = context.getImageData(0, 0, context.canvas.width, context.canvas.height);
  let state = 12345;
  for (let index = 0; index < pixels.data.length; index += 4) {
    state = (state * 1103515245 + 12345) % 2147483648;
    const noise = (state / 2147483648 - 0.5) * GRAIN;
    for (const channel of [0, 1, 2]) pixels.data[index + channel] = (pixels.data[index + channel] ?? 0) + noise;
  }
  context.putImageData(pixels, 0, 0);
}

function words(context: Context): void {
  context.translate(WIDTH / 2, HEIGHT / 2);
  context.rotate(-Math.PI / 9);
  context.font = "bold 54px sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = "rgb(255 255 255 / 45%)";
  for (let row = -6; row < 6; row += 1) {
    for (let column = -4; column < 4; column += 1) {
      context.fillText("SAMPLE", column * 330 + (row % 2 ? 165 : 0), row * 150);
    }
  }
}

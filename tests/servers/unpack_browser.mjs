// The archives of a browser come in, as npm has them; what is in them is left in TMPDIR.
import { inflate } from "@sparticuz/chromium";

const parts = ["chromium", "fonts.tar", "al2023.tar"];
await Promise.all(parts.map((name) => inflate(`node_modules/@sparticuz/chromium/bin/${name}.br`)));

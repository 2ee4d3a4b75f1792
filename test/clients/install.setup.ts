import { installApart } from '../support/install-apart.ts'

/** Installs the frameworks of `package.json` in this folder. */
export async function setup(): Promise<void> {
  await installApart(import.meta.dirname)
}

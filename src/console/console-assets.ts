import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** Bundled page. The build replaces the names with the texts (`console-page.config.ts`). */
declare const CONSOLE_SCRIPT: string
declare const CONSOLE_STYLE: string

/** File of the page. */
export interface ConsoleAsset {
  readonly contentType: string
  readonly bytes: Buffer
  readonly gzipped: Buffer
}

/** Files of the page by name. A name contains a digest of its content, so that browsers can cache it indefinitely. */
export interface ConsoleAssets {
  readonly scriptName: string
  readonly styleName: string
  readonly byName: ReadonlyMap<string, ConsoleAsset>
}

export function consoleAssets(): ConsoleAssets {
  const scriptName = nameOf(CONSOLE_SCRIPT, 'js')
  const styleName = nameOf(CONSOLE_STYLE, 'css')
  return {
    scriptName,
    styleName,
    byName: new Map([
      [scriptName, assetOf(CONSOLE_SCRIPT, 'text/javascript; charset=utf-8')],
      [styleName, assetOf(CONSOLE_STYLE, 'text/css; charset=utf-8')],
    ]),
  }
}

function nameOf(text: string, ending: string): string {
  return `console-${createHash('sha256').update(text).digest('hex').slice(0, 12)}.${ending}`
}

export function assetOf(text: string, contentType: string): ConsoleAsset {
  const bytes = Buffer.from(text)
  return { contentType, bytes, gzipped: gzipSync(bytes, { level: 9 }) }
}

import { isJsonObject } from '../core/json.ts'
import type { CallerUrl } from './endpoint.ts'

/**
 * A server that reads files by their addresses reads them from the operator's disk, so `file:` is refused as a private address is; and
 * so are the further schemes that libraries fetch, which reach hosts of its network. Not those of stores, such as `gs:`.
 */
const WEB_URL = /^(?:https?|file|s?ftps?|wss?|gopher|dict|ldaps?|smb):/i
/** What URL parsers skip: blanks and control characters in front, tabs and line ends anywhere (WHATWG, URL parsing). */
const SKIPPED = /^[\0-\x20]+|[\t\n\r]/g
/** The scheme is within so many characters, or it is no address that anyone wrote by accident. */
const LONGEST_BEGINNING = 256

/** Is it an address on the web, or of a file, however it is written? Long texts, such as data URLs, cost no more than short ones. */
export function isWebUrl(value: unknown): value is string {
  return typeof value === 'string' && WEB_URL.test(value.slice(0, LONGEST_BEGINNING).replace(SKIPPED, ''))
}

/** How deep parts of a message are searched. */
const MAX_DEPTH = 4

/** Adds the web addresses in a part of a message, but for those in its own text: vendors do not fetch addresses in a text. */
export function addWebUrls(part: Readonly<Record<string, unknown>>, path: string, urls: CallerUrl[]): void {
  for (const name in part) if (name !== 'text' && name !== 'type') addFrom(part[name], `${path}.${name}`, urls, 1)
}

function addFrom(value: unknown, path: string, urls: CallerUrl[], depth: number): void {
  if (isWebUrl(value)) urls.push({ url: value, param: path })
  if (depth >= MAX_DEPTH) return
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) addFrom(item, `${path}[${index}]`, urls, depth + 1)
  } else if (isJsonObject(value)) {
    for (const name in value) addFrom(value[name], `${path}.${name}`, urls, depth + 1)
  }
}

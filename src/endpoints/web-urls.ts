import { isJsonObject } from '../core/json.ts'
import type { CallerUrl } from './endpoint.ts'

/**
 * Schemes that servers or libraries may fetch. `file:` reads the operator's disk and others reach its network, so they are rejected
 * like private addresses. Schemes of stores, such as `gs:`, are excluded.
 */
const WEB_URL = /^(?:https?|file|s?ftps?|wss?|gopher|dict|ldaps?|smb):/i
/** Characters that URL parsers skip: leading blanks and control characters, tabs and line ends anywhere (WHATWG, URL parsing). */
const SKIPPED = /^[\0-\x20]+|[\t\n\r]/g
/** Characters searched for the scheme. A text with more characters before it is not an address by accident. */
const LONGEST_BEGINNING = 256

/** Whether a value is an address on the web or of a file, in any notation. Long texts cost no more than short ones. */
export function isWebUrl(value: unknown): value is string {
  return typeof value === 'string' && WEB_URL.test(value.slice(0, LONGEST_BEGINNING).replace(SKIPPED, ''))
}

/** Maximum depth to search in parts of a message. */
const MAX_DEPTH = 4

/** Adds the web addresses in a part of a message, except those in its own text, which vendors do not fetch. */
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

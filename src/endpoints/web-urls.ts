import { isJsonObject } from '../core/json.ts'
import type { CallerUrl, RemoteMedia } from './endpoint.ts'

/**
 * Schemes that servers or libraries may fetch. `file:` reads the operator's disk and others reach its network, so they are rejected
 * like private addresses. Schemes of stores, such as `gs:`, are excluded.
 */
const WEB_URL = /^(?:https?|file|s?ftps?|wss?|gopher|dict|ldaps?|smb):/i
/** Characters that URL parsers skip: leading blanks and control characters, tabs and line ends anywhere (WHATWG, URL parsing). */
const SKIPPED = /^[\0-\x20]+|[\t\n\r]/g
/** Characters searched for the scheme. A text with more characters before it is not an address by accident. */
const MAX_BEGINNING = 256

/** Whether a value is an address on the web or of a file, in any notation. Long texts cost no more than short ones. */
export function isWebUrl(value: unknown): value is string {
  return typeof value === 'string' && WEB_URL.test(value.slice(0, MAX_BEGINNING).replace(SKIPPED, ''))
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

/** A message, an item or a block of a request, or a part of one of these. */
export type Part = Readonly<Record<string, unknown>>

/** Where a dialect has the parts of its conversation. */
export interface PartPlaces {
  /** Member of the request with the messages or items. */
  readonly list: string
  /** Paths to nested parts within a part: `content`, `source.content`. */
  readonly nested: readonly string[]
}

/** Calls a function for all parts of a conversation, in the order of the request. `path` is the path of the part. */
export function eachPart(
  parts: unknown,
  path: string,
  nested: readonly string[],
  visit: (part: Part, path: string) => void,
): void {
  if (!Array.isArray(parts)) return
  for (let index = 0; index < parts.length; index++) {
    const part: unknown = parts[index]
    if (!isJsonObject(part)) continue
    const at = `${path}[${index}]`
    visit(part, at)
    for (const member of nested) eachPart(valueAt(part, member), `${at}.${member}`, nested, visit)
  }
}

/** How a dialect gives an image by its address. */
export interface ImagePlaces extends PartPlaces {
  /** Type of such parts. */
  readonly type: string
  /** Path of the address in the part. */
  readonly url: string
  /** Path of the value that is replaced. Defaults to `url`. */
  readonly replaced?: string
  /** Returns the value for a `data:` URL. Defaults to the URL. */
  inline?(dataUrl: string): unknown
}

/** Called for each image. Returns its `data:` URL, or `undefined` to keep it. */
type VisitImage = (url: string, param: string) => string | undefined

/** Returns the images of a request that are given by address, or `undefined` if there are none. */
export function remoteImages<Request extends object>(
  request: Request,
  places: ImagePlaces,
): RemoteMedia<Request> | undefined {
  const { list } = places
  const parts = (request as Part)[list]
  const urls: CallerUrl[] = []
  withImages(parts, list, places, (url, param) => {
    urls.push({ url, param })
    return undefined
  })
  if (urls.length === 0) return undefined
  return {
    urls,
    inline(dataUrls) {
      let next = 0
      return { ...request, [list]: withImages(parts, list, places, () => dataUrls[next++]) }
    },
  }
}

/** Returns the same parts if nothing was replaced. */
function withImages(parts: unknown, path: string, places: ImagePlaces, visit: VisitImage): unknown {
  if (!Array.isArray(parts)) return parts
  const walked = parts.map((part: unknown, index) =>
    isJsonObject(part) ? withImage(part, `${path}[${index}]`, places, visit) : part,
  )
  return walked.some((part, index) => part !== parts[index]) ? walked : parts
}

function withImage(part: Part, path: string, places: ImagePlaces, visit: VisitImage): Part {
  const { type, url: place, replaced = place, inline, nested } = places
  const url = part['type'] === type ? valueAt(part, place) : undefined
  if (isWebUrl(url)) {
    const dataUrl = visit(url, `${path}.${place}`)
    return dataUrl === undefined ? part : withValue(part, replaced.split('.'), inline?.(dataUrl) ?? dataUrl)
  }
  let changed = part
  for (const member of nested) {
    const parts = valueAt(part, member)
    const walked = withImages(parts, `${path}.${member}`, places, visit)
    if (walked !== parts) changed = withValue(changed, member.split('.'), walked)
  }
  return changed
}

function valueAt(part: Part, path: string): unknown {
  const dot = path.indexOf('.')
  if (dot === -1) return part[path]
  const owner = part[path.slice(0, dot)]
  return isJsonObject(owner) ? valueAt(owner, path.slice(dot + 1)) : undefined
}

function withValue(part: Part, [step, ...rest]: readonly string[], value: unknown): Part {
  return { ...part, [step!]: rest.length === 0 ? value : withValue(part[step!] as Part, rest, value) }
}

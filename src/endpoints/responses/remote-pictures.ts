import { isJsonObject } from '../../core/json.ts'
import type { CallerUrl, RemoteMedia } from '../endpoint.ts'
import type { ResponsesItem, ResponsesRequest } from './responses-request.ts'

/** The pictures of a request with a URL, in messages and in outputs of tools; undefined: none. */
export function remotePictures(request: ResponsesRequest): RemoteMedia<ResponsesRequest> | undefined {
  const { input } = request
  if (!Array.isArray(input)) return undefined
  const urls: CallerUrl[] = []
  walk(input, (url, param) => {
    urls.push({ url, param })
    return undefined
  })
  if (urls.length === 0) return undefined
  return {
    urls,
    inline(dataUrls) {
      let next = 0
      return { ...request, input: walk(input, () => dataUrls[next++]) }
    },
  }
}

/** Called for each picture in the order of the request; returns its replacement, or undefined to keep it. */
type Visit = (url: string, param: string) => string | undefined

function walk(items: readonly ResponsesItem[], visit: Visit): ResponsesItem[] {
  return items.map((item, index) => {
    for (const member of ['content', 'output']) {
      const parts = item[member]
      if (Array.isArray(parts)) return { ...item, [member]: walkParts(parts, `input[${index}].${member}`, visit) }
    }
    return item
  })
}

function walkParts(parts: readonly unknown[], path: string, visit: Visit): unknown[] {
  return parts.map((part, index) => {
    if (!isJsonObject(part) || part['type'] !== 'input_image' || !isWebUrl(part['image_url'])) return part
    const replaced = visit(part['image_url'], `${path}[${index}].image_url`)
    return replaced === undefined ? part : { ...part, image_url: replaced }
  })
}

function isWebUrl(url: unknown): url is string {
  return typeof url === 'string' && /^https?:/i.test(url)
}

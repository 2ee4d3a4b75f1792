import { isJsonObject } from '../../core/json.ts'
import type { CallerUrl, RemoteMedia } from '../endpoint.ts'
import type { MessagesRequest } from './messages-request.ts'

/** The pictures of a request with a URL, in any block; undefined: none. */
export function remotePictures(request: MessagesRequest): RemoteMedia<MessagesRequest> | undefined {
  const urls: CallerUrl[] = []
  walkMessages(request, (url, param) => {
    urls.push({ url, param })
    return undefined
  })
  if (urls.length === 0) return undefined
  return {
    urls,
    inline(dataUrls) {
      let next = 0
      return walkMessages(request, () => base64Source(dataUrls[next++]!))
    },
  }
}

/** Called for each picture in the order of the request; returns the replacement of its source, or undefined to keep it. */
type Visit = (url: string, param: string) => object | undefined

function walkMessages(request: MessagesRequest, visit: Visit): MessagesRequest {
  const messages = request.messages.map((message, index) => {
    const content = walkBlocks(message.content, `messages[${index}].content`, visit)
    return content === message.content ? message : { ...message, content: content as typeof message.content }
  })
  return { ...request, messages }
}

/** Returns the same blocks if nothing was replaced. */
function walkBlocks(blocks: unknown, path: string, visit: Visit): unknown {
  if (!Array.isArray(blocks)) return blocks
  let isChanged = false
  const walked = blocks.map((block: unknown, index) => {
    const replaced = walkBlock(block, `${path}[${index}]`, visit)
    if (replaced !== block) isChanged = true
    return replaced
  })
  return isChanged ? walked : blocks
}

/** Pictures occur in turns, in tool results, and in documents made of blocks. */
function walkBlock(block: unknown, path: string, visit: Visit): unknown {
  if (!isJsonObject(block)) return block
  const { type, source, content } = block
  if (type === 'image' && isJsonObject(source) && source['type'] === 'url' && isWebUrl(source['url'])) {
    const replaced = visit(source['url'], `${path}.source.url`)
    return replaced === undefined ? block : { ...block, source: replaced }
  }
  if (type === 'tool_result') {
    const walked = walkBlocks(content, `${path}.content`, visit)
    return walked === content ? block : { ...block, content: walked }
  }
  if (type === 'document' && isJsonObject(source) && source['type'] === 'content') {
    const walked = walkBlocks(source['content'], `${path}.source.content`, visit)
    return walked === source['content'] ? block : { ...block, source: { ...source, content: walked } }
  }
  return block
}

function isWebUrl(url: unknown): url is string {
  return typeof url === 'string' && /^https?:/i.test(url)
}

/** `data:image/png;base64,…` as the dialect has it. */
function base64Source(dataUrl: string): object {
  const comma = dataUrl.indexOf(',')
  const mediaType = dataUrl.slice('data:'.length, dataUrl.indexOf(';'))
  return { type: 'base64', media_type: mediaType, data: dataUrl.slice(comma + 1) }
}

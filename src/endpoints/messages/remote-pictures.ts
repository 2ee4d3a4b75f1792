import { isJsonObject } from '../../core/json.ts'
import type { CallerUrl, RemoteMedia } from '../endpoint.ts'
import { isWebUrl } from '../web-urls.ts'
import type { ContentBlock, MessagesRequest } from './messages-request.ts'

/** Returns the addresses that a vendor of the dialect fetches: images, documents and MCP servers. */
export function messagesUrls(request: MessagesRequest): readonly CallerUrl[] | undefined {
  const urls: CallerUrl[] = []
  for (const [index, { content }] of request.messages.entries())
    addSourceUrls(content, `messages[${index}].content`, urls)
  const { mcp_servers: servers } = request as { readonly mcp_servers?: unknown }
  if (Array.isArray(servers)) {
    for (const [index, server] of servers.entries())
      if (isJsonObject(server) && isWebUrl(server['url']))
        urls.push({ url: server['url'], param: `mcp_servers[${index}].url` })
  }
  return urls
}

function addSourceUrls(blocks: unknown, path: string, urls: CallerUrl[]): void {
  if (!Array.isArray(blocks)) return
  for (const [index, block] of blocks.entries()) {
    if (!isJsonObject(block)) continue
    const { source, content } = block
    if (isJsonObject(source)) {
      if (isWebUrl(source['url'])) urls.push({ url: source['url'], param: `${path}[${index}].source.url` })
      addSourceUrls(source['content'], `${path}[${index}].source.content`, urls)
    }
    addSourceUrls(content, `${path}[${index}].content`, urls)
  }
}

/** Returns the images of a request with a URL, in any block, or `undefined`. */
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

/** Called for each image, in the order of the request. Returns the replacement of its source, or `undefined` to keep it. */
type Visit = (url: string, param: string) => object | undefined

function walkMessages(request: MessagesRequest, visit: Visit): MessagesRequest {
  const messages = request.messages.map((message, index) => {
    const content = walkBlocks(message.content, `messages[${index}].content`, visit)
    return content === message.content ? message : { ...message, content: content as ContentBlock[] }
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

/** Images occur in turns, in tool results, and in documents made of blocks. */
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

/** Converts `data:image/png;base64,…` to a source of the dialect. */
function base64Source(dataUrl: string): object {
  const comma = dataUrl.indexOf(',')
  const mediaType = dataUrl.slice('data:'.length, dataUrl.indexOf(';'))
  return { type: 'base64', media_type: mediaType, data: dataUrl.slice(comma + 1) }
}

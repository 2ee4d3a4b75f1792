import type { CallerUrl, RemoteMedia } from '../endpoint.ts'
import { addWebUrls, isWebUrl } from '../web-urls.ts'
import type { ChatContentPart, ChatRequest } from './chat-request.ts'

/** Returns the addresses of images, videos, audio and files in the messages of a chat, or `undefined`. */
export function chatUrls({ messages }: ChatRequest): readonly CallerUrl[] | undefined {
  let urls: CallerUrl[] | undefined
  for (let messageIndex = 0; messageIndex < messages.length; messageIndex++) {
    const { content } = messages[messageIndex]!
    if (!Array.isArray(content)) continue
    urls ??= []
    for (const [index, part] of content.entries())
      addWebUrls(
        part as unknown as Readonly<Record<string, unknown>>,
        `messages[${messageIndex}].content[${index}]`,
        urls,
      )
  }
  return urls
}

/** Returns the images of a chat that are given by address, or `undefined`. */
export function remoteImages(request: ChatRequest): RemoteMedia<ChatRequest> | undefined {
  const urls = []
  for (const [messageIndex, { content }] of request.messages.entries()) {
    if (!Array.isArray(content)) continue
    for (const [index, part] of content.entries()) {
      if (isRemoteImage(part))
        urls.push({ url: part.image_url.url, param: `messages[${messageIndex}].content[${index}].image_url.url` })
    }
  }
  return urls.length === 0 ? undefined : { urls, inline: (dataUrls) => withImages(request, dataUrls) }
}

function withImages(request: ChatRequest, dataUrls: readonly string[]): ChatRequest {
  let next = 0
  const messages = request.messages.map((message) => {
    if (!Array.isArray(message.content) || !message.content.some(isRemoteImage)) return message
    const content = message.content.map((part) =>
      isRemoteImage(part) ? { ...part, image_url: { ...part.image_url, url: dataUrls[next++]! } } : part,
    )
    return { ...message, content }
  })
  return { ...request, messages }
}

function isRemoteImage(part: ChatContentPart): part is Extract<ChatContentPart, { type: 'image_url' }> {
  return part.type === 'image_url' && isWebUrl(part.image_url.url)
}

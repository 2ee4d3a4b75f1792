import { GatewayError } from '../core/errors.ts'
import type { ChatContentPart, ChatRequest } from '../endpoints/chat/chat-request.ts'
import { vendorCall } from './dispatch/attempt.ts'
import type { Candidate } from './records.ts'
import type { StageContext } from './stage-context.ts'

/** Does this request hold image URLs that the vendor wants as bytes? */
export function needsInlineImages(
  candidate: Candidate,
  body: { readonly model: string },
  nowMs: number,
): body is ChatRequest {
  const needs = candidate.vendor.chat?.needsInlineImages
  if (needs === undefined || !isChat(body) || !holdsImageUrl(body)) return false
  return needs(vendorCall(candidate, { body, bytes: undefined, isStream: false }, nowMs))
}

/** Most images that are fetched for one request, all of them together, and at the same time. */
const MAX_FETCHED_IMAGES = 20
const MAX_FETCHED_BYTES = 32 * 1024 * 1024
const MAX_PARALLEL_FETCHES = 4

/**
 * For a vendor that takes no image URLs: fetches the images of a chat and puts them in as data URLs.
 * @throws GatewayError `invalid_request` naming the image when it cannot be fetched, its address is not allowed, or there are
 *   more of them than one request may have fetched.
 */
export async function inlineImages(context: StageContext, body: ChatRequest): Promise<ChatRequest> {
  const remote = remoteImages(body)
  const urls = await fetchAll(context, remote)
  let next = 0
  const messages = body.messages.map((message) => {
    if (!Array.isArray(message.content) || !message.content.some(isRemoteImage)) return message
    const content = message.content.map((part) =>
      isRemoteImage(part) ? { ...part, image_url: { ...part.image_url, url: urls[next++]! } } : part,
    )
    return { ...message, content }
  })
  return { ...body, messages }
}

interface RemoteImage {
  readonly url: string
  /** Where it stands in the request. */
  readonly param: string
}

function remoteImages(body: ChatRequest): RemoteImage[] {
  const found: RemoteImage[] = []
  for (const [messageIndex, { content }] of body.messages.entries()) {
    if (!Array.isArray(content)) continue
    for (const [index, part] of content.entries()) {
      if (!isRemoteImage(part)) continue
      const param = `messages[${messageIndex}].content[${index}].image_url.url`
      if (found.length === MAX_FETCHED_IMAGES)
        throw refused(param, `at most ${MAX_FETCHED_IMAGES} images may be URLs for this model`)
      found.push({ url: part.image_url.url, param })
    }
  }
  return found
}

/** Data URLs in the order of the images. A few are fetched at a time; the first that fails ends the rest. */
async function fetchAll(context: StageContext, images: readonly RemoteImage[]): Promise<string[]> {
  const urls: string[] = new Array(images.length)
  let next = 0
  let byteLength = 0
  const work = async (): Promise<void> => {
    while (next < images.length) {
      const index = next++
      const { url, param } = images[index]!
      const fetched = await context.fetchImage(url)
      if ('reason' in fetched) {
        next = images.length
        throw refused(param, fetched.reason)
      }
      byteLength += fetched.bytes.byteLength
      if (byteLength > MAX_FETCHED_BYTES) {
        next = images.length
        throw refused(param, `the images of a request may have ${MAX_FETCHED_BYTES} bytes together`)
      }
      urls[index] = `data:${fetched.mediaType};base64,${Buffer.from(fetched.bytes).toString('base64')}`
    }
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_FETCHES }, work))
  return urls
}

function refused(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}

function isChat(body: { readonly model: string }): body is ChatRequest {
  return Array.isArray((body as Partial<ChatRequest>).messages)
}

function isRemoteImage(part: ChatContentPart): part is Extract<ChatContentPart, { type: 'image_url' }> {
  return part.type === 'image_url' && /^https?:/i.test(part.image_url.url)
}

function holdsImageUrl(body: ChatRequest): boolean {
  return body.messages.some((message) => Array.isArray(message.content) && message.content.some(isRemoteImage))
}

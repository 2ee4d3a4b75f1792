import { GatewayError } from '../core/errors.ts'
import type { ChatContentPart, ChatMessage, ChatRequest } from '../endpoints/chat/chat-request.ts'
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

/**
 * For a vendor that takes no image URLs: fetches the images of a chat and puts them in as data URLs.
 * @throws GatewayError `invalid_request` naming the image when it cannot be fetched or its address is not allowed.
 */
export async function inlineImages(context: StageContext, body: ChatRequest): Promise<ChatRequest> {
  const messages = await Promise.all(body.messages.map((message, index) => inlineMessage(context, message, index)))
  return { ...body, messages }
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

async function inlineMessage(context: StageContext, message: ChatMessage, messageIndex: number): Promise<ChatMessage> {
  if (!Array.isArray(message.content)) return message
  const content = await Promise.all(
    message.content.map(async (part, index) => {
      if (!isRemoteImage(part)) return part
      const param = `messages[${messageIndex}].content[${index}].image_url.url`
      const fetched = await context.fetchImage(part.image_url.url)
      if ('reason' in fetched)
        throw new GatewayError('invalid_request', { message: `${param}: ${fetched.reason}`, param })
      const url = `data:${fetched.mediaType};base64,${Buffer.from(fetched.bytes).toString('base64')}`
      return { ...part, image_url: { ...part.image_url, url } }
    }),
  )
  return { ...message, content }
}

import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { apiRequestHead } from './api-request.ts'
import { chatContents } from './chat-contents.ts'
import { reportDroppedFields } from './chat-fields.ts'
import { chatTools } from './chat-tools.ts'
import type { GenerateContentRequest } from './generate-content.ts'
import { generationConfig } from './generation-config.ts'
import { modelAbilities } from './model-abilities.ts'

/**
 * Writes a chat as `generateContent`, or `streamGenerateContent` when it streams (Gemini API, "Generating content").
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming what cannot be translated.
 */
export function chatToWire(call: VendorCall<ChatRequest>, basePath: string): WireRequest {
  const { request, model, stream } = call
  const abilities = modelAbilities(model.upstream)
  const dropped = new Set<string>()
  const report = (field: string): void => {
    dropped.add(field)
  }
  reportDroppedFields(request, report)
  const { systemInstruction, contents } = chatContents(request.messages, abilities, report)
  const config = generationConfig(request, { abilities, stream, report })
  const body: GenerateContentRequest = {
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    contents,
    ...chatTools(request, abilities),
    ...(config === undefined ? {} : { generationConfig: config }),
  }
  const method = stream ? 'streamGenerateContent' : 'generateContent'
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method, apiKey: call.apiKey }),
    body: JSON.stringify(body),
    dropped: [...dropped],
  }
}

/** True when the model does not fetch URLs and the chat holds pictures by URL, so that the gateway must fetch them. */
export function needsInlineImages(call: VendorCall<ChatRequest>): boolean {
  if (modelAbilities(call.model.upstream).fetchesUrls) return false
  return call.request.messages.some(
    ({ content }) =>
      Array.isArray(content) &&
      content.some((part) => part.type === 'image_url' && /^https?:\/\//i.test(part.image_url.url)),
  )
}

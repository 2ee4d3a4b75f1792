import type { CatalogModel } from '../../catalog/model.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { thinksUnseen } from '../shared/messages-reasoning.ts'
import type { ChatOperation, VendorCall } from '../vendor.ts'
import { converseAbilities } from './converse-abilities.ts'
import { converseBroken, converseDecoder, converseFromWire } from './converse-answer.ts'
import { converseToWire, SURCHARGES_LEFT_OUT } from './converse-request.ts'
import { isOpenWeight, SURFACES, surfaceOf } from './model-surface.ts'

/** Chat by Converse. @param prefix Path in front of the API's own. */
export function converseChat(prefix: string, apiKeys: readonly string[]): ChatOperation {
  return {
    toWire: (call) => converseToWire(call, prefix),
    fromWire: converseFromWire,
    brokenAnswer: converseBroken,
    decoder: (call, writer) => converseDecoder(call, writer, apiKeys),
    takesImageUrls: () => false,
    takesCacheControl: () => true,
    mostOutputTokens: ({ limits, upstream }) =>
      limits.maxOutputTokens ?? converseAbilities(upstream).messages.maxOutputTokens,
    makesAnswerFormats: () => true,
    leavesOut: SURCHARGES_LEFT_OUT,
    reasonsUnseen: ({ model, request }) => {
      const { messages, reasoningFields } = converseAbilities(model.upstream)
      const { reasoning_effort: effort } = request
      const isAsked = effort !== undefined && effort !== null && effort !== 'none'
      return reasoningFields === undefined ? thinksUnseen(messages, effort) && messages.thinking !== 'none' : isAsked
    },
  }
}

/** Chat in OpenAI's dialect, by the way that a model answers in it. */
export function openaiDialects({
  others,
  openWeight,
}: Readonly<Record<'others' | 'openWeight', ChatOperation>>): ChatOperation {
  const of = ({ model }: VendorCall<ChatRequest>): ChatOperation => (isOpenWeight(model.upstream) ? openWeight : others)
  return {
    ...others,
    protocols: ['openai'],
    fromWire: (answer, call) => of(call).fromWire(answer, call),
    brokenAnswer: (answer, call) => of(call).brokenAnswer?.(answer, call),
    decoder: (call, writer) => of(call).decoder(call, writer),
    passThrough: {
      ...others.passThrough!,
      fromWire: (chunks, call) => of(call).passThrough!.fromWire(chunks, call),
      stream: (call) => of(call).passThrough!.stream!(call),
    },
  }
}

/** Chat in the dialect of each model: OpenAI's, or Converse. */
export function bedrockChat(openai: ChatOperation, converse: ChatOperation): ChatOperation {
  const of = (model: CatalogModel): ChatOperation => (surfaceOf(model) === 'openai' ? openai : converse)
  const passThrough = openai.passThrough!
  const applies = (call: VendorCall<ChatRequest>): boolean => of(call.model) === openai && passThrough.applies(call)
  return {
    protocols: SURFACES,
    toWire: (call) => of(call.model).toWire(call),
    fromWire: (answer, call) => of(call.model).fromWire(answer, call),
    brokenAnswer: (answer, call) => of(call.model).brokenAnswer?.(answer, call),
    decoder: (call, writer) => of(call.model).decoder(call, writer),
    passThrough: { ...passThrough, applies },
    takesImageUrls: () => false,
    takesCacheControl: () => true,
    mostOutputTokens: (model) => of(model).mostOutputTokens?.(model),
    makesAnswerFormats: (model) => of(model).makesAnswerFormats?.(model) ?? false,
    // The dialect of OpenAI leaves them out too: see its rules.
    leavesOut: SURCHARGES_LEFT_OUT,
    reasonsUnseen: (call) => of(call.model).reasonsUnseen?.(call) ?? false,
  }
}

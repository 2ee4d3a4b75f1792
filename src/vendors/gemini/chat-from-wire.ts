import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { type ChatCompletion, chatUsage } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireAnswer } from '../vendor.ts'
import { AnswerReader } from './answer-reader.ts'
import { CompletionCollector } from './completion-collector.ts'
import { logprobsFrom } from './logprobs.ts'

/** Reads a whole answer of `generateContent`. Undefined for an error in disguise or an answer without content or reason. */
export function chatFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const response = parseVendorJson(new TextDecoder().decode(answer.body))
  if (!isJsonObject(response)) return undefined
  const collector = new CompletionCollector()
  const reader = new AnswerReader(collector, call)
  reader.read(response)
  const choices = collector.choices()
  if (reader.failure !== undefined || choices === undefined) return undefined
  const candidates = (Array.isArray(response['candidates']) ? response['candidates'] : []).filter(isJsonObject)
  for (const choice of choices) {
    choice.logprobs = logprobsFrom(candidates.find((candidate) => (candidate['index'] ?? 0) === choice.index))
  }
  const { usage } = reader
  const completion: ChatCompletion = {
    id: collector.id,
    object: 'chat.completion',
    created: Math.floor(call.nowMs / 1000),
    model: call.publicModel,
    choices,
    ...(usage === undefined ? {} : { usage: chatUsage(usage) }),
  }
  return { completion, usage }
}

import { createHash } from 'node:crypto'
import { isJsonObject } from '../../core/json.ts'
import type { EncryptedReasoning, ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall } from '../vendor.ts'

/** Reader of encrypted reasoning: the organization of a key, with the model that generated it (OpenAI, "Reasoning models"). */
type ReasoningReader = Pick<VendorCall<object>, 'apiKey'> & { readonly model: { readonly upstream: string } }

/** Returns reasoning in the form that chat callers carry, on the call or message that followed it. */
export function carriedReasoning(reasoning: EncryptedReasoning[], reader: ReasoningReader): ExtraContent {
  return { responses: { origin: originOf(reader), reasoning } }
}

/** Returns the reasoning that a caller carries. `isReadable` is false for reasoning of another key or model. */
export function readReasoning(
  extra: unknown,
  reader: ReasoningReader,
): { readonly reasoning: readonly EncryptedReasoning[]; readonly isReadable: boolean } | undefined {
  const state = isJsonObject(extra) ? extra['responses'] : undefined
  if (!isJsonObject(state) || !Array.isArray(state['reasoning'])) return undefined
  return { reasoning: state['reasoning'].filter(isReasoning), isReadable: state['origin'] === originOf(reader) }
}

/**
 * Whether a conversation carries reasoning that only this key can read. Such a request is sent there first.
 * @param call A chat request, or a conversation with its messages.
 */
export function ownsEncryptedReasoning(
  call: { readonly model: string; readonly messages?: unknown },
  apiKey: string,
): boolean {
  if (!Array.isArray(call.messages)) return false
  const key = `${keyMark(apiKey)}.`
  return call.messages.filter(isJsonObject).some((message) => {
    const { extra_content: extra, tool_calls: calls } = message
    const extras = Array.isArray(calls)
      ? [extra, ...calls.filter(isJsonObject).map((one) => one['extra_content'])]
      : [extra]
    return extras.some((one) => originIn(one)?.startsWith(key) === true)
  })
}

function originIn(extra: unknown): string | undefined {
  const state = isJsonObject(extra) ? extra['responses'] : undefined
  const origin = isJsonObject(state) ? state['origin'] : undefined
  return typeof origin === 'string' ? origin : undefined
}

function originOf({ apiKey, model }: ReasoningReader): string {
  return `${keyMark(apiKey)}.${markOf(`model ${model.upstream}`)}`
}

/** Hashes a key: marks are visible to callers, who must not learn a key or the vendor's id of a model. */
function keyMark(apiKey: string): string {
  return markOf(`key ${apiKey}`)
}

function markOf(text: string): string {
  return createHash('sha256').update(`reasoning ${text}`).digest('base64url').slice(0, 12)
}

function isReasoning(value: unknown): value is EncryptedReasoning {
  return isJsonObject(value) && typeof value['id'] === 'string' && typeof value['encrypted_content'] === 'string'
}

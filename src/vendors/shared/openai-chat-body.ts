import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { isErrorEnvelope } from './openai-chat-dialect.ts'

/** A choice of a whole answer, as far as it was checked. */
export interface WireChoice extends Record<string, unknown> {
  message: Record<string, unknown>
}

/** A whole answer of the dialect, as far as it was checked. */
export interface WireCompletion extends Record<string, unknown> {
  choices: WireChoice[]
}

/**
 * Reads the text of a whole answer. Undefined when it is not a chat completion: no JSON, an error in disguise, no
 * choices, or a choice without a message.
 */
export function readCompletion(text: string): WireCompletion | undefined {
  const body = parseVendorJson(text)
  return isCompletion(body) ? body : undefined
}

function isCompletion(body: unknown): body is WireCompletion {
  if (!isJsonObject(body) || isErrorEnvelope(body)) return false
  const choices = body['choices']
  return (
    Array.isArray(choices) &&
    choices.length > 0 &&
    choices.every((choice) => isJsonObject(choice) && isJsonObject(choice['message']))
  )
}

import { isJsonObject } from '../../core/json.ts'

/**
 * True for a chat request of the plainest kind: text messages and the common settings, all within their bounds. Such a
 * request needs no walk through the schema, which would also copy it. False says nothing: the schema then judges. A test
 * holds that nothing is ordinary that the schema refuses.
 */
export function isOrdinaryChatRequest(body: unknown): boolean {
  if (!isJsonObject(body)) return false
  const { model, messages } = body
  if (typeof model !== 'string' || model === '' || !Array.isArray(messages) || messages.length === 0) return false
  if (!messages.every(isOrdinaryMessage)) return false
  for (const name in body) {
    if (name === 'model' || name === 'messages') continue
    const isOrdinary = SETTINGS.get(name)
    if (isOrdinary === undefined || !isOrdinary(body[name])) return false
  }
  return true
}

function isOrdinaryMessage(message: unknown): boolean {
  if (!isJsonObject(message) || typeof message['content'] !== 'string') return false
  const { role } = message
  if (role !== 'user' && role !== 'system' && role !== 'assistant' && role !== 'developer') return false
  for (const name in message) if (name !== 'role' && name !== 'content') return false
  return true
}

const isBoolean = (value: unknown): boolean => typeof value === 'boolean'
const isTokenBound = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 1
const isWithin =
  (least: number, most: number) =>
  (value: unknown): boolean =>
    typeof value === 'number' && value >= least && value <= most

/** Settings that most requests use; their bounds are those of the schema. */
const SETTINGS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['temperature', isWithin(0, 2)],
  ['top_p', isWithin(0, 1)],
  ['presence_penalty', isWithin(-2, 2)],
  ['frequency_penalty', isWithin(-2, 2)],
  ['max_tokens', isTokenBound],
  ['max_completion_tokens', isTokenBound],
  ['stream', isBoolean],
  ['stream_options', (value: unknown): boolean => isJsonObject(value) && isOptional(value['include_usage'], isBoolean)],
  ['stop', (value: unknown): boolean => typeof value === 'string'],
  ['user', (value: unknown): boolean => typeof value === 'string'],
])

function isOptional(value: unknown, check: (value: unknown) => boolean): boolean {
  return value === undefined || check(value)
}

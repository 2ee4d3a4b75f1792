import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import { GENERATED_BYTES_PER_TOKEN } from '../token-estimate.ts'

/** A token is 50 ms of sound (OpenAI, "Managing costs"), which is streamed as PCM of 24 kHz and 16 bits only. */
const SOUND_BYTES_PER_TOKEN = 2_400

/**
 * Bytes of generated text in a message, or a delta, of the chat dialect: content, refusal, reasoning, and the names and
 * arguments of tool calls; sound counts as text of as many tokens. By it an answer is charged whose usage nobody reported.
 */
export function messageTextBytes(message: object): number {
  const { content, refusal, reasoning_content, reasoning, tool_calls, function_call, audio } = message as Record<
    string,
    unknown
  >
  let byteLength = textBytes(content) + textBytes(refusal) + textBytes(reasoning_content || reasoning)
  if (audio !== undefined) byteLength += spokenBytes(audio)
  if (function_call !== undefined) byteLength += calledBytes(function_call, 'arguments')
  if (!Array.isArray(tool_calls)) return byteLength
  for (const call of tool_calls)
    if (isJsonObject(call))
      byteLength += calledBytes(call['function'], 'arguments') + calledBytes(call['custom'], 'input')
  return byteLength
}

function spokenBytes(audio: unknown): number {
  if (!isJsonObject(audio)) return 0
  const { data, transcript } = audio
  const soundBytes = typeof data === 'string' ? (data.length * 3) / 4 : 0
  return textBytes(transcript) + Math.ceil((soundBytes / SOUND_BYTES_PER_TOKEN) * GENERATED_BYTES_PER_TOKEN)
}

function calledBytes(called: unknown, member: 'arguments' | 'input'): number {
  return isJsonObject(called) ? textBytes(called['name']) + textBytes(called[member]) : 0
}

/** The same of all choices of a whole answer. */
export function completionTextBytes({
  choices,
}: {
  readonly choices: readonly { readonly message: object }[]
}): number {
  return choices.reduce((sum, { message }) => sum + messageTextBytes(message), 0)
}

function textBytes(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0
}

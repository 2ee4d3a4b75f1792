import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import { GENERATED_BYTES_PER_TOKEN } from '../token-estimate.ts'

/** A token is 50 ms of audio (OpenAI, "Managing costs"), which is streamed only as 16-bit PCM at 24 kHz. */
const SOUND_BYTES_PER_TOKEN = 2_400

/**
 * Returns the bytes of generated text in a message or delta: content, refusal, reasoning, and names and arguments of
 * tool calls. Audio counts as text of as many tokens. Answers without reported usage are charged by this.
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

/** Returns the bytes of generated text in all choices of a whole answer. */
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

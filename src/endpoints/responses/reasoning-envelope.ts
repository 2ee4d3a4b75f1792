// See docs/decisions/0018-vendor-state.md.

import { Buffer } from 'node:buffer'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../../core/errors.ts'
import { assertPlainJson, isJsonObject, isSparse, parseVendorJson } from '../../core/json.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import { invalidField } from '../field-errors.ts'

/** Prefix of every `encrypted_content` that the gateway wrote. */
export const ENVELOPE_MARK = 'signalbox:'

/** Longest state that is carried. Longer state is dropped, and the next turn is sent without it. */
const MAX_ENVELOPE_LENGTH = 1024 * 1024

const MAC_LENGTH = 22
const VERSION = 1

const PROCESS_SECRET = randomBytes(32)

/** Key of the message's own state among states that are keyed by call id. */
export const MESSAGE_STATE = ''

/** Vendor state that must be returned with the next turn. */
export interface ReasoningState {
  /** Blocks signed by the vendor, which precede the answer of their turn. */
  readonly blocks?: readonly ThinkingBlock[] | undefined
  /** Text of the reasoning, if the model reads it again. Empty if the caller sees it. */
  readonly text?: string | undefined
  /** State of calls, keyed by the id of the call. */
  readonly calls?: Readonly<Record<string, ExtraContent>> | undefined
}

/** Reader of an envelope, and the secret that signs it. */
export interface EnvelopeOwner {
  /** Id of the vendor that issued the state. */
  readonly vendor: string
  /** Secret that signs the state. If omitted, a secret of this process is used, and state of other processes is dropped. */
  readonly secret?: string | undefined
}

/**
 * Writes state as `encrypted_content` of a reasoning item. Clients return it unchanged, so a conversation needs no store. The
 * vendor verifies its own signatures. Returns `undefined` for state that is too long.
 */
export function sealReasoning(state: ReasoningState, owner: EnvelopeOwner): string | undefined {
  const payload = Buffer.from(JSON.stringify({ v: VERSION, vendor: owner.vendor, ...state })).toString('base64url')
  const envelope = `${ENVELOPE_MARK}${payload}.${macOf(payload, owner.secret)}`
  return envelope.length > MAX_ENVELOPE_LENGTH ? undefined : envelope
}

/** Whether the gateway wrote the content. No vendor can read such content. */
export function isEnvelope(content: unknown): content is string {
  return typeof content === 'string' && content.startsWith(ENVELOPE_MARK)
}

/**
 * Returns the state in an envelope, or `undefined` if another vendor, or a process without a shared secret, may have issued it.
 * @param param Path of the content in the request.
 * @throws GatewayError `invalid_request` naming the content if it was damaged or changed.
 */
export function openReasoning(content: string, owner: EnvelopeOwner, param: string): ReasoningState | undefined {
  const dot = content.lastIndexOf('.')
  const payload = content.slice(ENVELOPE_MARK.length, Math.max(dot, ENVELOPE_MARK.length))
  if (content.length > MAX_ENVELOPE_LENGTH || dot === -1 || !isMacOf(content.slice(dot + 1), payload, owner.secret)) {
    if (owner.secret === undefined) return undefined
    throw invalidField(param, 'was damaged or changed; send it unchanged', 'invalid_encrypted_content')
  }
  const read = readPayload(payload)
  return read?.vendor === owner.vendor ? read.state : undefined
}

/** Returns the unverified state in an envelope of any vendor, if any. It helps to decide where to send a request first. */
export function peekReasoning(content: unknown): ReasoningState | undefined {
  if (!isEnvelope(content) || content.length > MAX_ENVELOPE_LENGTH) return undefined
  return readPayload(content.slice(ENVELOPE_MARK.length, content.lastIndexOf('.')))?.state
}

/** Whether an envelope is dispensable, because the caller has the text of the reasoning. */
export function isSealOnly(content: unknown): boolean {
  const state = peekReasoning(content)
  return state?.text === '' && state.blocks === undefined && state.calls === undefined
}

/** Returns the unverified texts of reasoning in an envelope. */
export function reasoningIn(content: unknown): readonly string[] {
  const state = peekReasoning(content)
  const thoughts = state?.blocks?.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : [])) ?? []
  return [...thoughts, state?.text ?? ''].filter((text) => text !== '')
}

function readPayload(payload: string): { readonly vendor: unknown; readonly state: ReasoningState } | undefined {
  const json = Buffer.from(payload, 'base64url').toString('utf8')
  const content = isSparse(json) ? parseVendorJson(json) : undefined
  if (!isJsonObject(content) || content['v'] !== VERSION || !isPlain(content)) return undefined
  const { vendor, blocks, text, calls } = content
  return {
    vendor,
    state: {
      ...(Array.isArray(blocks) ? { blocks: blocks as ThinkingBlock[] } : {}),
      ...(typeof text === 'string' ? { text } : {}),
      ...(isJsonObject(calls) ? { calls: calls as Record<string, ExtraContent> } : {}),
    },
  }
}

/** Whether a value could come from the gateway. Only callers write deeply nested objects or a member `__proto__`. */
function isPlain(value: unknown): boolean {
  try {
    assertPlainJson(value)
    return true
  } catch (error) {
    if (GatewayError.isInstance(error)) return false
    throw error
  }
}

function macOf(payload: string, secret: string | Buffer = PROCESS_SECRET): string {
  return createHmac('sha256', secret).update(payload).digest('base64url').slice(0, MAC_LENGTH)
}

function isMacOf(mac: string, payload: string, secret: string | undefined): boolean {
  const expected = Buffer.from(macOf(payload, secret))
  const given = Buffer.from(mac)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

import { presets } from '../../../vendors/presets/presets.ts'
import { chatTurn } from '../model/chat-turn.ts'
import { OPENAI_ERRORS, openaiInvalid } from '../openai/openai-errors.ts'
import { COMPATIBLE_DIALECT, chatAnswer } from '../openai-dialect/chat-answer.ts'
import { checkChatRequest, readChatPrompt, tokenLimit } from '../openai-dialect/chat-request.ts'
import { asNumber, asObject, asText } from '../request-fields.ts'
import { checkBearer, RefusedCall, type SandboxOperation, type SandboxReply } from '../sandbox-operation.ts'
import { PRESET_SCRIPTS, type PresetScript, unlistedField } from './preset-scripts.ts'

const PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/chat\/completions$/

/**
 * The servers of `signalbox/presets`: `POST /presets/ID/v1/chat/completions`. Their scripts decide how they answer, reject and
 * deviate.
 */
export const PRESET_CHAT: SandboxOperation = {
  vendor: 'presets',
  operation: 'chat',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && Object.hasOwn(presets, PATH.exec(path)?.[1] ?? ''),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    const id = PATH.exec(call.path)?.[1] as keyof typeof presets
    const script: PresetScript = PRESET_SCRIPTS[id] ?? {}
    if (presets[id].needsKey) checkBearer(call, OPENAI_ERRORS)
    checkChatRequest(call.body, openaiInvalid)
    const request = asObject(call.body)
    const refusal = script.refuses?.(request) ?? unlistedField(id, request)
    if (refusal !== undefined) throw new RefusedCall(openaiInvalid(refusal, null))
    const effort = asText(request['reasoning_effort'])
    const hasBudget = script.hasThinkingBudget === true
    const reasoning = hasBudget ? request['enable_thinking'] !== false : effort !== '' && effort !== 'none'
    const bounds = hasBudget
      ? {
          maxTokens: undefined,
          answerTokens: asNumber(request['max_tokens']),
          thinkingTokens: asNumber(request['thinking_budget']),
        }
      : { maxTokens: tokenLimit(request) }
    const turn = chatTurn({ ...readChatPrompt(request), reasoning, ...bounds }, context)
    // All words of reasoning in one chunk, as servers write it that put it into a form of their own.
    const joined = { ...turn, reasoning: turn.reasoning.length === 0 ? [] : [turn.reasoning.join('')] }
    const asked =
      script.alwaysReportsUsage === true && request['stream'] === true
        ? { ...request, stream_options: { include_usage: true } }
        : request
    return edited(chatAnswer(asked, joined, context, COMPATIBLE_DIALECT, []), script)
  },
}

/** The reply with each JSON text in it edited. */
function edited(reply: SandboxReply, { edits }: PresetScript): SandboxReply {
  if (edits === undefined) return reply
  const pieces = reply.pieces.map((piece) => {
    const [prefix, text] = reply.streamed ? ['data: ', String(piece).slice('data: '.length)] : ['', String(piece)]
    if (!text.startsWith('{')) return piece
    const body = JSON.parse(text) as Record<string, unknown>
    edits(body)
    return reply.streamed ? `${prefix}${JSON.stringify(body)}\n\n` : JSON.stringify(body)
  })
  return { ...reply, pieces }
}

import { GEMINI_ERRORS } from '../gemini/gemini-errors.ts'
import { chatTurn } from '../model/chat-turn.ts'
import { openaiInvalid } from '../openai/openai-errors.ts'
import { type ChatDialect, COMPATIBLE_DIALECT, chatAnswer } from '../openai-dialect/chat-answer.ts'
import { checkChatRequest, readChatPrompt, tokenLimit } from '../openai-dialect/chat-request.ts'
import type { SandboxOperation } from '../sandbox-operation.ts'
import { checkVertexCall, isOpenChat } from './vertex-call.ts'

const DIALECT: ChatDialect = {
  ...COMPATIBLE_DIALECT,
  usage: ({ prompt, completion }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  }),
}

/** Vertex AI: open models by the OpenAI surface. Errors are Google's. */
export const VERTEX_OPEN_CHAT: SandboxOperation = {
  vendor: 'vertex',
  operation: 'chat',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && isOpenChat(path),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkVertexCall(call, context.nowMs, { takesKeys: false })
    checkChatRequest(call.body, openaiInvalid)
    const prompt = { ...readChatPrompt(call.body), reasoning: false, maxTokens: tokenLimit(call.body) }
    const turn = chatTurn(prompt, context)
    return chatAnswer(call.body, turn, context, DIALECT, [])
  },
}

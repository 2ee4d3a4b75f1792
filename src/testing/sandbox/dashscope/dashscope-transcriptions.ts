import { Buffer } from 'node:buffer'
import { heardRecording } from '../model/transcript.ts'
import { asList, asObject, asText } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { DASHSCOPE_ERRORS, DASHSCOPE_HEADERS, dashscopeInvalid } from './dashscope-errors.ts'

const PATH = '/compatible-mode/v1/chat/completions'

/** DashScope: Qwen-ASR by `POST /compatible-mode/v1/chat/completions`. It reports the seconds of the recording. */
export const DASHSCOPE_TRANSCRIPTIONS: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'transcriptions',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && path === PATH && /-asr-/.test(asText(asObject(body)['model'])),
  promptText: (body) => asText(asObject(asList(turnOf(body, 'system')['content'])[0])['text']),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    const content = asList(turnOf(call.body, 'user')['content']).map(asObject)
    const sound = asObject(content.find(({ type }) => type === 'input_audio')?.['input_audio'])
    const match = /^data:audio\/[\w.-]+;base64,([A-Za-z0-9+/]+=*)$/.exec(asText(sound['data']))
    const heard = match && heardRecording(Buffer.from(match[1] ?? '', 'base64'), context.script)
    if (!heard) throw new RefusedCall(dashscopeInvalid('The audio cannot be decoded.', null))
    const message = {
      role: 'assistant',
      content: heard.text,
      annotations: [{ type: 'audio_info', language: 'en', emotion: 'neutral' }],
    }
    return jsonReply(200, DASHSCOPE_HEADERS, {
      id: `chatcmpl-${context.id}`,
      object: 'chat.completion',
      created: Math.floor(context.nowMs / 1000),
      model: asText(asObject(call.body)['model']),
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: context.usage({ seconds: heard.seconds, prompt_tokens: 42, completion_tokens: heard.tokens }),
    })
  },
}

function turnOf(body: unknown, role: string): Readonly<Record<string, unknown>> {
  return asObject(
    asList(asObject(body)['messages'])
      .map(asObject)
      .find((turn) => turn['role'] === role),
  )
}

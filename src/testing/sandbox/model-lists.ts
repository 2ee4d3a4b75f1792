import { presets } from '../../vendors/presets/presets.ts'
import { ANTHROPIC_ERRORS } from './anthropic/anthropic-request.ts'
import { DASHSCOPE_ERRORS } from './dashscope/dashscope-errors.ts'
import { GEMINI_ERRORS } from './gemini/gemini-errors.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS } from './openai/openai-errors.ts'
import { checkApiKey, jsonReply, type SandboxOperation, type VendorErrors } from './sandbox-operation.ts'

const CREATED = 1_767_225_600

/** A list of models in the form of one vendor. */
interface ModelList {
  readonly vendor: string
  readonly errors: VendorErrors
  matches(path: string, headers: Readonly<Record<string, string>>): boolean
  readonly headers?: readonly string[]
  /** Whether a path needs a key. Default true. */
  needsKey?(path: string): boolean
  body(): object
}

function openaiList(ids: readonly string[]): object {
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: CREATED, owned_by: 'sandbox' })) }
}

/** Returns the id of a preset in a path, or an empty string. */
function presetOf(path: string): string {
  return /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/models$/.exec(path)?.[1] ?? ''
}

const LISTS: readonly ModelList[] = [
  {
    vendor: 'anthropic',
    errors: ANTHROPIC_ERRORS,
    matches: (path, headers) => path === '/v1/models' && headers['anthropic-version'] !== undefined,
    body: () => ({
      data: [
        {
          type: 'model',
          id: 'claude-sonnet-5-5',
          display_name: 'Claude Sonnet 5.5',
          created_at: '2026-01-01T00:00:00Z',
        },
      ],
      has_more: false,
      first_id: 'claude-sonnet-5-5',
      last_id: 'claude-sonnet-5-5',
    }),
  },
  {
    vendor: 'openai',
    errors: OPENAI_ERRORS,
    matches: (path) => path === '/v1/models',
    headers: OPENAI_HEADERS,
    body: () => openaiList(['gpt-6-sol', 'gpt-6-luna']),
  },
  {
    vendor: 'gemini',
    errors: GEMINI_ERRORS,
    matches: (path) => path === '/v1beta/models',
    body: () => ({ models: [{ name: 'models/gemini-3.8-flash', supportedGenerationMethods: ['generateContent'] }] }),
  },
  {
    vendor: 'dashscope',
    errors: DASHSCOPE_ERRORS,
    matches: (path) => path === '/compatible-mode/v1/models',
    body: () => openaiList(['qwen-plus']),
  },
  {
    vendor: 'azure',
    errors: OPENAI_ERRORS,
    matches: (path) => path === '/openai/v1/models',
    body: () => openaiList(['gpt-6-sol']),
  },
  {
    vendor: 'presets',
    errors: OPENAI_ERRORS,
    matches: (path) => Object.hasOwn(presets, presetOf(path)),
    needsKey: (path) => presets[presetOf(path) as keyof typeof presets].needsKey,
    body: () => openaiList(['small', 'large']),
  },
]

/** `GET …/models` of the vendors that list their models. Any key is accepted, and required if the vendor requires one. */
export const MODEL_LISTS: readonly SandboxOperation[] = LISTS.map(
  ({ vendor, errors, matches, needsKey, headers = [], body }) => ({
    vendor,
    operation: 'models',
    errors,
    needsJson: false,
    matches: (call) => call.method === 'GET' && matches(call.path, call.headers),
    promptText: () => '',
    answer(call) {
      if (needsKey?.(call.path) !== false) checkApiKey(call, errors)
      return jsonReply(200, headers, body())
    },
  }),
)

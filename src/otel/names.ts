/**
 * Names of attributes by the GenAI and MCP conventions of OpenTelemetry, all of which are in development:
 * open-telemetry/semantic-conventions-genai, main of October 2026, and core 1.41 for backends that have not followed. The gateway's
 * own names begin with `signalbox.`.
 */
export interface SemanticNames {
  readonly cacheWriteTokens: string
}

/** Supported versions of OpenTelemetry's semantic conventions for generative AI. */
export type SemanticConventions = '2026-10' | '1.41'

/** Names that differ between the versions. */
export const NAMES: Readonly<Record<SemanticConventions, SemanticNames>> = {
  '2026-10': { cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens' },
  '1.41': { cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens' },
}

export const OPERATION_NAME = 'gen_ai.operation.name'
export const PROVIDER_NAME = 'gen_ai.provider.name'
export const REQUEST_MODEL = 'gen_ai.request.model'
export const REQUEST_STREAM = 'gen_ai.request.stream'
export const OUTPUT_TYPE = 'gen_ai.output.type'
export const TIME_TO_FIRST_CHUNK = 'gen_ai.response.time_to_first_chunk'
export const INPUT_TOKENS = 'gen_ai.usage.input_tokens'
export const CACHE_READ_TOKENS = 'gen_ai.usage.cache_read.input_tokens'
export const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens'
export const REASONING_TOKENS = 'gen_ai.usage.reasoning.output_tokens'
export const COST_AMOUNT = 'gen_ai.usage.cost'
export const SERVER_ADDRESS = 'server.address'
export const SERVER_PORT = 'server.port'
export const ERROR_TYPE = 'error.type'
export const STATUS_CODE = 'http.response.status_code'

export const TOKEN_MODALITY = 'gen_ai.token.modality'

/** Histograms of calls to models, in seconds. */
export const DURATION_METRICS = ['gen_ai.client.inference.duration', 'gen_ai.server.request.duration'] as const
export const FIRST_CHUNK_METRICS = [
  'gen_ai.client.inference.time_to_first_chunk',
  'gen_ai.server.time_to_first_token',
] as const
export const PER_TOKEN_METRICS = ['gen_ai.server.time_per_output_token'] as const

/** Counters of tokens by the gateway's name of their kind. Input and output include their parts. */
export const TOKEN_METRICS = {
  input: 'gen_ai.client.inference.usage.input_tokens',
  cached_input: 'gen_ai.client.inference.usage.cache_read.input_tokens',
  cache_write: 'gen_ai.client.inference.usage.cache_write.input_tokens',
  output: 'gen_ai.client.inference.usage.output_tokens',
  reasoning: 'gen_ai.client.inference.usage.reasoning.output_tokens',
} as const

/** Operations by kind of model; all other kinds use `OTHER_OPERATION`. */
export const OPERATIONS: Readonly<Record<string, string>> = { chat: 'chat', embedding: 'embeddings' }
export const OTHER_OPERATION = 'generate_content'

export const TOOL_NAME = 'gen_ai.tool.name'
export const MCP_METHOD = 'mcp.method.name'
export const MCP_SESSION_ID = 'mcp.session.id'
export const MCP_PROTOCOL_VERSION = 'mcp.protocol.version'
export const RPC_REQUEST_ID = 'jsonrpc.request.id'
export const RPC_STATUS_CODE = 'rpc.response.status_code'

export const REQUEST_ID = 'signalbox.request.id'
export const ENDPOINT = 'signalbox.endpoint'
export const ACCOUNT_ID = 'signalbox.account.id'
export const KEY_ID = 'signalbox.key.id'
export const REQUESTED_MODEL = 'signalbox.requested_model'
export const MODEL = 'signalbox.model'
export const VENDOR = 'signalbox.vendor'
export const ENDING = 'signalbox.ending'
export const ATTEMPTS = 'signalbox.attempts'
export const OUTCOME = 'signalbox.outcome'
export const ERROR_CODE = 'signalbox.error.code'
export const COST = 'signalbox.cost'
export const STORE_MS = 'signalbox.store.duration_ms'

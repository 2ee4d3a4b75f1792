import type { ModelDefinition } from '../../catalog/model.ts'
import { checkEnumerated, type MemberNames } from '../../core/known-members.ts'
import { type AwsLocation, awsAddress } from '../shared/aws-address.ts'
import { awsFailure } from '../shared/aws-error.ts'
import { listedModelIds } from '../shared/aws-model-ids.ts'
import { plainMessages } from '../shared/chat-fields.ts'
import { keyPool } from '../shared/key-pool.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { OPENAI_RULES } from '../shared/openai-field-rules.ts'
import { checkVendorOptions } from '../shared/vendor-options.ts'
import {
  type ApiKeys,
  type ConnectionOptions,
  type UnlistedModelOptions,
  type Vendor,
  vendorConnection,
} from '../vendor.ts'
import { bedrockChat, converseChat, openaiDialects } from './bedrock-chat.ts'
import { invokeEmbeddings } from './invoke-embeddings.ts'
import { isGrok, openaiReasonsUnseen } from './model-surface.ts'
import { CALL_ID_REPAIR, OPEN_WEIGHT_REPAIR } from './openai-answers.ts'

/** Options of {@link amazonBedrock}. */
export interface AmazonBedrockOptions extends AwsLocation, UnlistedModelOptions, ConnectionOptions {
  /** Id of the vendor, where there are several regions or accounts; `amazon-bedrock` by default. */
  readonly id?: string | undefined
  /** Name for people; `Amazon Bedrock` by default. */
  readonly displayName?: string | undefined
  /** Keys of Bedrock, or a provider of `signalbox/credentials`. Without one the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** `eu-central-1`. */
  readonly region?: string | undefined
  /** Instead of `region`: an address, such as that of a private endpoint. */
  readonly endpoint?: string | undefined
  /** `bedrock-mantle` has only the path of OpenAI's dialect. `bedrock-runtime` by default. */
  readonly service?: 'bedrock-runtime' | 'bedrock-mantle' | undefined
  /** The models it serves under other ids; `upstream` is the id of a model or inference profile, or an ARN. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
}

const AMAZON_BEDROCK_OPTIONS = {
  id: true,
  displayName: true,
  apiKey: true,
  region: true,
  endpoint: true,
  service: true,
  models: true,
  passUnknownModels: true,
  headers: true,
  query: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<AmazonBedrockOptions>

/** Below the address of each service. */
const OPENAI_PATHS = { 'bedrock-runtime': '/openai/v1', 'bedrock-mantle': '/v1' } as const

/** A tier or search with a price of its own is left out, as by Converse. */
const OPENAI_DIALECT_RULES = {
  ...OPENAI_RULES.max_completion_tokens,
  messages: plainMessages,
  service_tier: 'drop',
  web_search_options: 'drop',
} as const

/** Penalties are answered by 503, as if the service were down. */
const GROK_RULES = { ...OPENAI_DIALECT_RULES, presence_penalty: 'drop', frequency_penalty: 'drop' } as const

/** A row's `protocol` that the model does not have: "The model 'x' does not support the '/v1/chat/completions' API". */
const ERROR_WORDS: ErrorWords = { messages: [[/^the model '[^']*' does not support the '\/[^']*' API\b/i, 'operator']] }

/**
 * Amazon Bedrock in one region: chat by Converse or, for models that are offered so, in OpenAI's dialect. The `protocol` of a
 * model's row, `converse` or `openai`, goes before the choice by its id. Embeddings of Titan, Nova and Cohere by InvokeModel.
 * @throws TypeError for an unknown option, and unless exactly one of `region` and `endpoint` is given.
 */
export function amazonBedrock(options: AmazonBedrockOptions): Vendor {
  checkVendorOptions('amazonBedrock', options, AMAZON_BEDROCK_OPTIONS)
  checkEnumerated(options.service, Object.keys(OPENAI_PATHS), 'amazonBedrock', 'service')
  const service = options.service ?? 'bedrock-runtime'
  const { origin, prefix } = awsAddress('amazonBedrock', service, options)
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const id = options.id ?? 'amazon-bedrock'
  const errors = errorReader(ERROR_WORDS, apiKeys)
  const dialect = {
    path: `${prefix}${OPENAI_PATHS[service]}/chat/completions`,
    rulesFor: (upstream: string) => (isGrok(upstream) ? GROK_RULES : OPENAI_DIALECT_RULES),
    takesImageUrls: false,
    reasonsUnseen: openaiReasonsUnseen,
    streamFailure: errors.fromStream,
  }
  const openai = openaiDialects({
    others: openaiChat({ ...dialect, answerRepair: CALL_ID_REPAIR }),
    openWeight: openaiChat({ ...dialect, answerRepair: OPEN_WEIGHT_REPAIR }),
  })
  return {
    id,
    displayName: options.displayName ?? 'Amazon Bedrock',
    origin,
    ...vendorConnection(options),
    ...pool,
    configuredBy: 'AWS_BEARER_TOKEN_BEDROCK or amazonBedrock({ apiKey })',
    models: (options.models ?? []).map((model) => ({ ...model, vendor: id })),
    catalogId: 'bedrock',
    catalogIds: listedModelIds,
    passUnknownModels: options.passUnknownModels ?? false,
    chat: service === 'bedrock-mantle' ? openai : bedrockChat(openai, converseChat(prefix, apiKeys)),
    ...(service === 'bedrock-mantle' ? {} : { embeddings: invokeEmbeddings(prefix) }),
    errorFrom: (answer, nowMs) => awsFailure(answer, nowMs, apiKeys) ?? errors.fromAnswer(answer, nowMs),
  }
}

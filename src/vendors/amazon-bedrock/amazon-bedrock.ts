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
  /** Id of the vendor, for several regions or accounts. Default `amazon-bedrock`. */
  readonly id?: string | undefined
  /** Display name. Default `Amazon Bedrock`. */
  readonly displayName?: string | undefined
  /** API keys of Bedrock, or a provider of `signalbox/credentials`. If omitted, the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Region, such as `eu-central-1`. */
  readonly region?: string | undefined
  /** Address in place of `region`, such as that of a private endpoint. */
  readonly endpoint?: string | undefined
  /** Service. `bedrock-mantle` supports only OpenAI's dialect. Default `bedrock-runtime`. */
  readonly service?: 'bedrock-runtime' | 'bedrock-mantle' | undefined
  /** Models served under other ids. `upstream` is the id of a model or inference profile, or an ARN. */
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

/** Path below the address of each service. */
const OPENAI_PATHS = { 'bedrock-runtime': '/openai/v1', 'bedrock-mantle': '/v1' } as const

/** Tiers and searches with their own price are dropped, as in Converse. */
const OPENAI_DIALECT_RULES = {
  ...OPENAI_RULES.max_completion_tokens,
  messages: plainMessages,
  service_tier: 'drop',
  web_search_options: 'drop',
} as const

/** The service answers penalties with 503, as if it were down. */
const GROK_RULES = { ...OPENAI_DIALECT_RULES, presence_penalty: 'drop', frequency_penalty: 'drop' } as const

/** The row has a `protocol` that the model does not support: "The model 'x' does not support the '/v1/chat/completions' API". */
const ERROR_WORDS: ErrorWords = { messages: [[/^the model '[^']*' does not support the '\/[^']*' API\b/i, 'operator']] }

/**
 * Creates the vendor Amazon Bedrock in one region: chat through Converse or, for models that offer it, in OpenAI's dialect. A row's
 * `protocol`, `converse` or `openai`, takes precedence over the choice by id. Titan, Nova and Cohere embeddings use InvokeModel.
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

import type { ModelDefinition } from '../model.ts'
import {
  DASHSCOPE_EMBEDDING_MODELS,
  DASHSCOPE_IMAGE_MODELS,
  DASHSCOPE_RERANK_MODELS,
  DASHSCOPE_SPEECH_MODELS,
  DASHSCOPE_VIDEO_MODELS,
} from './dashscope-models.ts'
import { GEMINI_EMBEDDING_MODELS, GEMINI_IMAGE_MODELS } from './gemini-models.ts'
import { GEMINI_LISTENING_MODELS } from './gemini-transcription.ts'
import { OPENAI_IMAGE_MODELS } from './openai-models.ts'
import { VOYAGE_EMBEDDING_MODELS, VOYAGE_RERANK_MODELS } from './voyage-models.ts'

/**
 * Chat models of Anthropic (API specification, "Chat completion request"). Longest answers: the vendor's model table. Their
 * context size depends on the account, so it is omitted.
 */
const ANTHROPIC_CHAT_MODELS: readonly ModelDefinition[] = [
  {
    id: 'cl-opus-4-7',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-opus-4-7',
    aliases: ['claude-opus-4-7'],
    limits: { contextTokens: 1_000_000, maxOutputTokens: 128_000 },
    created: Date.UTC(2026, 3, 16) / 1000,
    displayName: 'Claude Opus 4.7',
  },
  {
    id: 'cl-sonnet-4-6',
    kind: 'chat',
    vendor: 'anthropic',
    upstream: 'claude-sonnet-4-6',
    aliases: ['claude-sonnet-4-6'],
    limits: { contextTokens: 1_000_000, maxOutputTokens: 128_000 },
    displayName: 'Claude Sonnet 4.6',
  },
]

/**
 * Every model id of the API specification, followed by those of later endpoints, in the order of `GET /v1/models`. The vendors'
 * own ids are aliases, and a host may override any row. `created` is 0 if the release date is uncertain.
 */
export const BUILT_IN_MODELS: readonly ModelDefinition[] = [
  ...ANTHROPIC_CHAT_MODELS,
  ...GEMINI_LISTENING_MODELS,
  ...DASHSCOPE_EMBEDDING_MODELS,
  ...GEMINI_EMBEDDING_MODELS,
  ...VOYAGE_EMBEDDING_MODELS,
  ...DASHSCOPE_IMAGE_MODELS,
  ...GEMINI_IMAGE_MODELS,
  ...OPENAI_IMAGE_MODELS,
  ...DASHSCOPE_VIDEO_MODELS,
  ...DASHSCOPE_SPEECH_MODELS,
  ...VOYAGE_RERANK_MODELS,
  ...DASHSCOPE_RERANK_MODELS,
]

/** Provider ids at models.dev for vendors with a different id in the catalog: vendor id → provider ids. */
export const MODELS_DEV_PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  gemini: ['google'],
  dashscope: ['alibaba'],
  bedrock: ['amazon-bedrock'],
  cloudflare: ['cloudflare-workers-ai'],
  fireworks: ['fireworks-ai'],
  moonshot: ['moonshotai'],
  novita: ['novita-ai'],
  perplexity: ['perplexity-agent'],
  together: ['togetherai'],
  vertex: ['google-vertex'],
  'anthropic-vertex': ['google-vertex'],
  'anthropic-bedrock': ['amazon-bedrock'],
  'anthropic-foundry': ['anthropic'],
  'azure-openai': ['azure'],
}

/**
 * Ids of vendors, here and at models.dev, that price all output of a call by its thinking mode (Model Studio, "Model pricing").
 * Public catalogs list the output price in thinking mode as a price of reasoning tokens.
 */
export const PRICED_BY_THINKING_MODE: ReadonlySet<string> = new Set(['dashscope', 'alibaba'])

/** Provider ids at LiteLLM: vendor id → provider ids. */
export const LITELLM_PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  fireworks: ['fireworks_ai'],
  nvidia: ['nvidia_nim'],
  together: ['together_ai'],
  vertex: ['vertex_ai-language-models'],
  'amazon-bedrock': ['bedrock', 'bedrock_converse'],
  'anthropic-bedrock': ['bedrock', 'bedrock_converse'],
  'anthropic-foundry': ['azure_ai'],
  'anthropic-vertex': ['vertex_ai-anthropic_models'],
  'azure-openai': ['azure', 'azure_ai'],
}

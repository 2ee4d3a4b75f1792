import type { ModelDefinition } from '../define-model.ts'

/**
 * Image models (API specification, "Multimodal image request", "Interactions-style image request", "Image edit request").
 * The `qw-image-edit*` models edit pictures but are called on the generations route, so their kind is `image`.
 */
export const IMAGE_MODELS: readonly ModelDefinition[] = [
  qwenImage('2.0', 'Qwen Image 2.0'),
  qwenImage('2.0-pro', 'Qwen Image 2.0 Pro'),
  qwenImage('max', 'Qwen Image Max'),
  qwenImage('edit', 'Qwen Image Edit'),
  qwenImage('edit-plus', 'Qwen Image Edit Plus'),
  qwenImage('edit-max', 'Qwen Image Edit Max'),
  {
    id: 'gmn-3.1-flash-image-preview',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-3.1-flash-image-preview',
    protocol: 'interactions',
    aliases: ['gemini-3.1-flash-image-preview'],
    limits: { contextTokens: 131_072, maxOutputTokens: 32_768 },
    displayName: 'Gemini 3.1 Flash Image Preview',
  },
  {
    id: 'gmn-3-pro-image-preview',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-3-pro-image-preview',
    protocol: 'interactions',
    aliases: ['gemini-3-pro-image-preview'],
    limits: { contextTokens: 65_536, maxOutputTokens: 32_768 },
    displayName: 'Gemini 3 Pro Image Preview',
  },
  {
    id: 'gmn-2.5-flash-image',
    kind: 'image',
    vendor: 'gemini',
    upstream: 'gemini-2.5-flash-image',
    protocol: 'interactions',
    aliases: ['gmn-2.5-flash-image-preview', 'gemini-2.5-flash-image', 'gemini-2.5-flash-image-preview'],
    limits: { contextTokens: 65_536, maxOutputTokens: 32_768 },
    created: Date.UTC(2025, 9, 2) / 1000,
    displayName: 'Gemini 2.5 Flash Image',
  },
  {
    id: 'gp-image-2',
    kind: ['image', 'image_edit'],
    vendor: 'openai',
    upstream: 'gpt-image-2',
    protocol: 'openai-images',
    aliases: ['gpt-image-2'],
    created: Date.UTC(2026, 3, 21) / 1000,
    displayName: 'GPT Image 2',
  },
  {
    id: 'gp-image-1',
    kind: 'image_edit',
    vendor: 'openai',
    upstream: 'gpt-image-1',
    protocol: 'openai-images',
    aliases: ['gpt-image-1'],
    created: Date.UTC(2025, 3, 23) / 1000,
    displayName: 'GPT Image 1',
  },
  {
    id: 'de-2',
    kind: 'image_edit',
    vendor: 'openai',
    upstream: 'dall-e-2',
    protocol: 'openai-images',
    aliases: ['dall-e-2'],
    created: Date.UTC(2022, 10, 3) / 1000,
    displayName: 'DALL·E 2',
  },
]

function qwenImage(variant: string, displayName: string): ModelDefinition {
  const upstream = `qwen-image-${variant}`
  return {
    id: `qw-image-${variant}`,
    kind: 'image',
    vendor: 'dashscope',
    upstream,
    protocol: 'multimodal',
    aliases: [upstream],
    displayName,
  }
}

import type { ModelDefinition } from '../define-model.ts'

/** Speech models (API specification, "Speech request"). */
export const SPEECH_MODELS: readonly ModelDefinition[] = [
  {
    id: 'qw3-tts-flash',
    kind: 'speech',
    vendor: 'dashscope',
    upstream: 'qwen3-tts-flash',
    protocol: 'multimodal',
    aliases: ['qwen3-tts-flash'],
    displayName: 'Qwen3 TTS Flash',
  },
  {
    id: 'qw3-tts-instruct-flash',
    kind: 'speech',
    vendor: 'dashscope',
    upstream: 'qwen3-tts-instruct-flash',
    protocol: 'multimodal',
    aliases: ['qwen3-tts-instruct-flash'],
    displayName: 'Qwen3 TTS Instruct Flash',
  },
]

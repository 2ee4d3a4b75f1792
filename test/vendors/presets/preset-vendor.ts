import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { Preset } from '../../../src/vendors/presets/presets.ts'

export function vendorOf(preset: Preset) {
  return openaiCompatible(preset, { apiKey: 'k-0123456789', account: 'a' })
}

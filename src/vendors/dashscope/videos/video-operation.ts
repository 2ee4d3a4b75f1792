import { mediaAddresses, type VideoRequest } from '../../../endpoints/videos/video-request.ts'
import { bearerHeaders } from '../../shared/bearer-headers.ts'
import type { VendorCall, VideoOperation, WireRequest } from '../../vendor.ts'
import { acceptedTask, taskReport } from './task-report.ts'
import { videoBody } from './video-body.ts'

/** Top-level fields that are used here and do not go to the vendor. */
const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'duration',
  'resolution',
  'aspect_ratio',
  'input',
  'parameters',
  'webhook_url',
])

/**
 * Video by DashScope's native API (Wan, video synthesis and task query): submitted, then asked about.
 * @param basePath Path up to and including the version: `/api/v1`.
 * @param apiKeys Keys of the operator, removed from the vendor's texts.
 */
export function videoOperation(basePath: string, apiKeys: readonly string[]): VideoOperation {
  return {
    toWire: (call) => submission(call, `${basePath}/services/aigc/video-generation/video-synthesis`),
    accepted: acceptedTask,
    read: (upstreamId, apiKey) => ({
      method: 'GET',
      path: taskPath(basePath, upstreamId),
      headers: taskHeaders(apiKey),
    }),
    report: (answer) => taskReport(answer, apiKeys),
    cancel: (upstreamId, apiKey) => ({
      method: 'POST',
      path: `${taskPath(basePath, upstreamId)}/cancel`,
      headers: taskHeaders(apiKey),
    }),
    pollIntervalMs: 15_000,
    // The vendor takes 20 questions a second of one account. A second touches at most five windows.
    pollBudget: { takes: 4, windowMs: 250 },
  }
}

function submission(call: VendorCall<VideoRequest>, path: string): WireRequest {
  const { request, body } = videoBody(call)
  const headers = bearerHeaders(call.apiKey, 'application/json')
  headers.push('x-dashscope-async', 'enable')
  // Files uploaded to the vendor are looked up only when it is told so.
  if (mediaAddresses(request.input).some(({ url }) => /^oss:/i.test(url))) {
    headers.push('x-dashscope-ossresourceresolve', 'enable')
  }
  return { path, headers, body, dropped: furtherFields(call.request) }
}

const NO_FIELDS: readonly string[] = []

function furtherFields(request: VideoRequest): readonly string[] {
  let further: string[] | undefined
  for (const name of Object.keys(request)) {
    if (GATEWAY_FIELDS.has(name)) continue
    further ??= []
    further.push(name)
  }
  return further ?? NO_FIELDS
}

function taskPath(basePath: string, upstreamId: string): string {
  return `${basePath}/tasks/${encodeURIComponent(upstreamId)}`
}

function taskHeaders(apiKey: string): readonly string[] {
  return ['accept', 'application/json', 'accept-encoding', 'identity', 'authorization', `Bearer ${apiKey}`]
}

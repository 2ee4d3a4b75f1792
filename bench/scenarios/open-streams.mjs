import { openStreams } from '../measurements/open-streams.mjs'
import { chatRequest } from '../requests.mjs'

export const scenario = {
  name: 'open-streams',
  title: 'memory of 1,000 open streams',
  unit: 'kB/stream',
  measurement: openStreams,
  headline: 'residentKilobytes',
  comparison: 'absolute',
  target: 36,
  request: () => chatRequest('bench-chat-slow', { stream: true }),
}

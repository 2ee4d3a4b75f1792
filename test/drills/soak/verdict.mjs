/** The first samples see code compiled and caches filled. */
const WARM_UP_SHARE = 0.2
/** By so much may the heap seem to grow: what is under way at the moment of a sample is not always the same. */
const NOISE_BYTES = 4 * 1024 * 1024
/** A call that leaves a record behind leaves more than this. */
const MAX_BYTES_A_CALL = 64
const MIB = 1024 * 1024

/** How much the heap grew after the warm-up by the straight line closest to the samples, and what is allowed. */
export function heapGrowth(samples) {
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE))
  if (warm.length < 3) return undefined
  const slope = slopeOf(warm.map(({ atMs, heapBytes }) => [atMs, heapBytes]))
  const [first, last] = [warm[0], warm.at(-1)]
  const grownBytes = slope * (last.atMs - first.atMs)
  const calls = last.ended - first.ended
  return { grownBytes, calls, allowedBytes: NOISE_BYTES + MAX_BYTES_A_CALL * calls }
}

/** Reasons why the soak has failed; empty if it has passed. */
export function faultsOf({ samples, last, money, load, videos, receiver }) {
  const faults = [...money.faults]
  const growth = heapGrowth(samples)
  if (growth === undefined) faults.push('too few samples to judge the heap')
  else if (growth.grownBytes > growth.allowedBytes)
    faults.push(
      `the heap grew by ${(growth.grownBytes / MIB).toFixed(2)} MiB in ${growth.calls} calls after the warm-up, ` +
        `${(growth.allowedBytes / MIB).toFixed(2)} MiB are allowed`,
    )
  if (load.wrongCount > 0) faults.push(`${load.wrongCount} wrong answers:`, ...load.wrong)
  for (const [name, count] of load.made) if (count === 0) faults.push(`no call of the kind "${name}" was made`)
  if (last.sockets > 0) faults.push(`${last.sockets} connections are left`)
  if (last.callsUnderWay > 0) faults.push(`${last.callsUnderWay} calls are still under way`)
  if (last.held !== 0n) faults.push(`${last.held} nano-dollars are still on hold`)
  if (last.internalErrors > 0) faults.push(`${last.internalErrors} internal errors`)
  if (receiver.refused > 0) faults.push(`${receiver.refused} webhooks were not signed rightly`)
  for (const id of videos) {
    const told = receiver.messages.get(id) ?? []
    if (told.length === 0 || told.some((status) => status !== 'completed'))
      faults.push(`of the video ${id} the webhooks told: ${told.join(', ') || 'nothing'}`)
  }
  return faults
}

/** The heading of the table. */
export const TABLE_HEAD = [
  'time',
  'calls',
  'calls/s',
  'core %',
  'heap MiB',
  'RSS MiB',
  'handles',
  'sockets',
  'under way',
  'held $',
  'delay p99 ms',
]
  .map((title) => title.padStart(12))
  .join('')

/** One row of it. */
export function tableRow({ atMs, made, perSecond, cpuShare, ...sample }) {
  const seconds = Math.round(atMs / 1_000)
  return [
    `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`,
    made,
    perSecond.toFixed(1),
    (cpuShare * 100).toFixed(0),
    (sample.heapBytes / MIB).toFixed(2),
    (sample.residentBytes / MIB).toFixed(0),
    sample.handles,
    sample.sockets,
    sample.callsUnderWay,
    (Number(sample.held) / 1e9).toFixed(4),
    sample.delayP99Ms.toFixed(1),
  ]
    .map((value) => String(value).padStart(12))
    .join('')
}

/** Slope of the straight line that lies closest to the points (least squares). */
function slopeOf(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanX = mean(points.map(([x]) => x))
  const meanY = mean(points.map(([, y]) => y))
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}

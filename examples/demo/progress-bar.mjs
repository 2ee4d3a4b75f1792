// @ts-check

const CELLS = 24

/**
 * Shows the progress of a video: a bar that is redrawn on a terminal, and otherwise a line for each new status.
 * Vendors do not report progress, so the bar follows the usual time of a video.
 * @param {string} label
 * @param {number} expectedMs
 * @param {{ isTTY?: boolean, write: (text: string) => unknown }} [output]
 * @returns {(progress: import('signalbox/client').VideoProgress) => void}
 */
export function progressBar(label, expectedMs, output = process.stdout) {
  let shown = ''
  return ({ task: { status }, elapsedMs }) => {
    const isOver = status === 'completed' || status === 'failed' || status === 'cancelled'
    const text = `${label} ${status} ${(elapsedMs / 1000).toFixed(1)} s`
    if (output.isTTY !== true) {
      if (status !== shown) output.write(`  ${text}\n`)
      shown = status
      return
    }
    const cells = isOver ? CELLS : Math.min(CELLS - 1, Math.floor((CELLS * elapsedMs) / expectedMs))
    // At the end, the row of the table replaces the bar.
    output.write(isOver ? '\r\x1b[2K' : `\r\x1b[2K  [${'#'.repeat(cells).padEnd(CELLS, '.')}] ${text}`)
  }
}

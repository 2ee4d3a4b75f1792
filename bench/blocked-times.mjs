/**
 * Measures how long this process keeps its event loop from the next turn. A turn counts with the lesser of the time that passed and the
 * processor time that the process used, so that neighbours on the machine do not matter.
 */
export function blockedTimes() {
  let timer
  let longestMs = 0
  let beganMs = 0
  let usage
  const turn = () => {
    const nowMs = performance.now()
    const { user, system } = process.cpuUsage(usage)
    longestMs = Math.max(longestMs, Math.min(nowMs - beganMs, (user + system) / 1000))
    next()
  }
  const next = () => {
    beganMs = performance.now()
    usage = process.cpuUsage()
    timer = setTimeout(turn, 1)
  }
  return {
    begin() {
      longestMs = 0
      next()
    },
    /** Returns the longest turn since `begin`, in milliseconds. */
    end() {
      clearTimeout(timer)
      return longestMs
    },
  }
}

/* The page of a database that is away: asks now and then whether it is back, and then shows what it is about. */
(function () {
  "use strict";
  const EVERY = 5000;
  const place = document.querySelector("[data-back-when]");
  if (!place) return;

  setInterval(function () {
    if (document.hidden) return;
    fetch(place.dataset.backWhen, { cache: "no-store" }).then(function (answer) {
      if (answer.ok) location.reload();
    }, function () { /* nobody answers: later */ });
  }, EVERY);
})();
